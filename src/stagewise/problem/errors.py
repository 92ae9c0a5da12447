"""What goes wrong at the door. Every message names the value, the rule and the reason; nothing has changed."""

from stagewise.problem.words import LONGEST, one_line


class StagewiseError(ValueError):
    """Something given to stagewise cannot be used; said in one line, whatever names and values stand in it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(one_line(sentence, LONGEST))


class InvalidProblem(StagewiseError):
    """A setting or a promise about the problem contradicts another, or cannot hold."""


class InvalidActions(StagewiseError):
    """An action set cannot be chosen from."""


class InvalidOutcome(StagewiseError):
    """An outcome cannot be learned from, or belongs to no open decision."""


class InvalidFile(StagewiseError):
    """A saved file cannot be continued from."""
