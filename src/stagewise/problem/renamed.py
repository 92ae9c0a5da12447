"""What settings were called before: files of then still load, and whoever gives an old name is told the new one."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from stagewise.problem.errors import InvalidProblem

P = ParamSpec("P")
R = TypeVar("R")
NAMES = {
    "certify": "bound_gap",
    "mu": "cost",
    "noise_kind": "outcomes",
    "parameter_bound": "norm_bound",
    "starts": "directions",
    "theta": "reward",
    "tolerance": "novelty",
}
VALUES = {("radius", "mixture"): "joint"}
GONE = ("tolerance", "budget", "search")  # of methods that only the reproduction has
ONLY = (("sets", "likelihood"), ("optimism", "inflated"))  # settings that are gone where this is their only value


def today(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an earlier file by their names of today, without those that are no more.

    >>> from stagewise.models.space import RBF
    >>> today(RBF, {"lengthscale": 0.5, "budget": 300})
    {'lengthscale': 0.5}
    """
    known, named = signature(kind).parameters, {}
    for name, value in settings.items():
        new = name if name in known or NAMES.get(name) not in known else NAMES[name]
        if new in known or not (new in GONE or (new, value) in ONLY):
            named[new] = VALUES.get((new, value), value) if isinstance(value, str) else value
    return named


def refuse_old(kind: Any, settings: Mapping[str, Any]) -> None:
    """Refuse old names, with the new ones; and settings that are no more, with what became of them (`kind.gone`)."""
    gone = getattr(kind, "gone", {})
    for name, value in settings.items():
        if name in gone and name not in signature(kind).parameters:
            raise InvalidProblem(f"`{name}` is gone {gone[name]}")
        if name in NAMES or name == "radius":
            for new, worth in today(kind, {name: value}).items():
                if new != name:
                    raise InvalidProblem(f"`{name}` is now `{new}`; give it by that name")
                if worth is not value:
                    raise InvalidProblem(f"{name}={value!r} is now {name}={worth!r}; give it by that name")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function whose arguments had other names: whoever gives an old one is told the new one.

    >>> @renamed(start="learned")
    ... def played(learned: object = None) -> object:
    ...     return learned
    >>> played(start=1)
    Traceback (most recent call last):
    stagewise.problem.errors.InvalidProblem: `start` is now `learned`; give it by that name
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*given: P.args, **told: P.kwargs) -> R:
            for old, new in names.items():
                if old in told:
                    raise InvalidProblem(f"`{old}` is now `{new}`; give it by that name")
            return function(*given, **told)

        return called

    return decorated
