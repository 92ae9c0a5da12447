"""What goes wrong at the door. Every message names the value, the rule and the reason; nothing has changed."""


class StagewiseError(ValueError):
    """Something given to stagewise cannot be used."""


class InvalidProblem(StagewiseError):
    """A setting or a promise about the problem contradicts another, or cannot hold."""


class InvalidActions(StagewiseError):
    """An action set cannot be chosen from."""


class InvalidOutcome(StagewiseError):
    """An outcome cannot be learned from, or belongs to no open decision."""


class InvalidFile(StagewiseError):
    """A saved file cannot be continued from."""
