"""People that are made up: two groups of three, two actions and nothing."""

import numpy as np

from stagewise_studies.replay import People


def six() -> People:
    """Return three people who bear the second action well, and three of whom two do not."""
    return People(
        actions=("none", "some"),
        contexts=[{"group": "well"}] * 3 + [{"group": "ill"}] * 3,
        reward=np.array([[0.0, 1.0]] * 3 + [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]),
        cost=np.array([[0.0, 0.0]] * 3 + [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
        groups={"group": np.array([0, 0, 0, 1, 1, 1]), "all": np.zeros(6, dtype=int)},
    )
