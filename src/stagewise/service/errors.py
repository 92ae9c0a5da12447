"""What the desk refuses; each of them is one sentence, and nothing has changed."""

from stagewise.problem.errors import StagewiseError


class UnknownExperiment(StagewiseError):
    """There is no experiment of this name."""


class UnknownDecision(StagewiseError):
    """No decision has this id."""


class Conflict(StagewiseError):
    """The same id came with other content, or a change contradicts what is there."""
