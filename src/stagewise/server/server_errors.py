"""Errors of the server."""

from stagewise.problem.errors import StagewiseError


class UnknownExperiment(StagewiseError):
    """The server has no experiment of this name."""


class UnknownDecision(StagewiseError):
    """The log has no decision with this id."""


class Conflict(StagewiseError):
    """The request contradicts what is stored."""
