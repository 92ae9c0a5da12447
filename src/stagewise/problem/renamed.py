"""What settings were called before: files of then still load, and whoever gives an old name is told the new one."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from stagewise.problem.errors import InvalidProblem

NAMES = {
    "certify": "bound_gap",
    "mu": "cost",
    "noise_kind": "outcomes",
    "parameter_bound": "norm_bound",
    "theta": "reward",
    "tolerance": "novelty",
}
VALUES = {("radius", "mixture"): "joint"}
GONE = ("tolerance", "budget", "search")  # of methods that only the reproduction has
USUAL = ("sets", "likelihood")  # the others are there too


def today(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an earlier file by their names of today, without those that are no more.

    >>> from stagewise.models.space import RBF
    >>> today(RBF, {"lengthscale": 0.5, "budget": 300})
    {'lengthscale': 0.5}
    """
    known, named = signature(kind).parameters, {}
    for name, value in settings.items():
        new = name if name in known or NAMES.get(name) not in known else NAMES[name]
        if new in known or not (new in GONE or (new, value) == USUAL):
            named[new] = VALUES.get((new, value), value) if isinstance(value, str) else value
    return named


def refuse_old(kind: Any, settings: Mapping[str, Any]) -> None:
    """Refuse old names, with the new ones."""
    for name, value in settings.items():
        if name in NAMES or name == "radius":
            for new, worth in today(kind, {name: value}).items():
                if new != name:
                    raise InvalidProblem(f"`{name}` is now `{new}`; give it by that name")
                if worth is not value:
                    raise InvalidProblem(f"{name}={value!r} is now {name}={worth!r}; give it by that name")
