"""Learn the rows of a log in compiled code."""

from collections.abc import Callable

from stagewise.kernels.compile import Floats, Ints, factory, kernel
from stagewise.kernels.loop.round import RoundSpec, build_round


@factory
def build_log_learner(round_spec: RoundSpec) -> Callable[..., None]:
    """Return a kernel that learns the rows of a log with the same arithmetic as one outcome at a time."""
    learn = build_round(round_spec).learn

    @kernel
    def learn_rows(
        features: Floats, indices: Ints, values: Floats, layout: Ints, settings: Floats, memory: Floats, work: Floats
    ) -> None:
        """Learn the rewards and costs (n, 1 + m) of actions (n, d), or of arms given by their indices (n,)."""
        for row in range(values.shape[0]):
            learn(features[row], indices[row], 1.0, values[row], layout, settings, memory, work)

    return learn_rows
