"""A log, taken in row by row without coming back to Python in between."""

from collections.abc import Callable

from stagewise.kernels.compile import Floats, Ints, factory, kernel
from stagewise.kernels.loop.round import Form, round_for


@factory
def log_for(form: Form) -> Callable[..., None]:
    """Return what takes in the rows of a log, by the same arithmetic as one outcome at a time."""
    learn = round_for(form).learn

    @kernel
    def learn_rows(
        features: Floats, indices: Ints, values: Floats, layout: Ints, settings: Floats, memory: Floats, work: Floats
    ) -> None:
        """Take in the rewards and costs (n, 1 + m) of actions (n, d), or of the arms (n,) whose indices these are."""
        for row in range(values.shape[0]):
            learn(features[row], indices[row], 1.0, values[row], layout, settings, memory, work)

    return learn_rows
