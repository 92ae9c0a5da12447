"""What a desk refuses, each in one sentence."""

from stagewise.problem.errors import StagewiseError


class UnknownExperiment(StagewiseError):
    """No experiment of this name is served."""


class UnknownDecision(StagewiseError):
    """No decision of this id is in the log."""


class Conflict(StagewiseError):
    """The id is taken by something else."""
