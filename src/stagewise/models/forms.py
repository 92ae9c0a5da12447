"""What a ridge model believes, as functions of an action: linear estimates and the norms of their widths."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels import linear
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.ridge import Regression
from stagewise.kernels.shape import together


class Forms(NamedTuple):
    """The estimates <x, e> of every signal, and the widths ‖W x‖ of the reward and of the costs."""

    reward: Floats  # (d,)
    costs: Floats  # (m, d)
    reward_norm: Floats  # (n, d)
    cost_norm: Floats  # (n, d) the same array where one regression serves both


def believed_forms(flags: Ints, numbers: Floats, memory: Floats) -> Forms:
    """Return what settings and memory say of an action."""
    mind = named(linear.named_mind)(flags, numbers, memory)
    estimates, reward_norm = forms_of(mind.reward, mind.shape.dimension)
    if named(together)(mind.shape):
        return Forms(estimates[0], estimates[1:], reward_norm, reward_norm)
    costs, cost_norm = forms_of(mind.costs, mind.shape.dimension)
    return Forms(estimates[0], costs, reward_norm, cost_norm)


def forms_of(model: Regression, d: int) -> tuple[Floats, Floats]:
    """Return the estimates (k, d) and the norm T Z (n, d), where z = Z x are the coordinates that are learned."""
    anchor, root = model.anchor, model.ridge.root
    if anchor.reflector.size == 0:
        return model.ridge.fits.copy(), np.tril(root)
    reflection = np.eye(d) - 2.0 * np.outer(anchor.reflector, anchor.reflector)
    coordinates, share = reflection[: len(root)], reflection[len(root)] * anchor.unit
    return model.ridge.fits @ coordinates + np.outer(anchor.known, share), np.tril(root) @ coordinates
