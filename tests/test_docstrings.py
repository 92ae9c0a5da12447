"""What an editor shows of the public functions: the docstring describes every argument, and choices are Literals."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import stagewise as sw
from stagewise.launch.evaluation.evaluate import ESTIMATORS
from stagewise.simulation.simulate import BACKENDS

CALLED_CLASSES = ("Agent", "Replica", "Client")  # whose methods users call
CONSTRUCTED = (
    *CALLED_CLASSES,
    "ArmSet",
    "FiniteSet",
    "RaySet",
    "BallSet",
    "EllipsoidSet",
    "BoxSet",
    "PolytopeSet",
    "ContextVector",
)


def functions() -> Iterator[tuple[str, Any, str]]:
    """Yield what users call: its name, itself, and the docstring that is shown for it."""
    for name in sw.__all__:
        value = getattr(sw, name)
        if inspect.isfunction(value):
            yield name, value, inspect.getdoc(value) or ""
        if name in CONSTRUCTED:
            yield name, value.__init__, inspect.getdoc(value) or ""
        if name in CALLED_CLASSES:
            for verb, method in inspect.getmembers(value):
                if not verb.startswith("_") and (inspect.isfunction(method) or inspect.ismethod(method)):
                    yield f"{name}.{verb}", method, inspect.getdoc(method) or ""


CALLED = list(functions())
DATA = [name for name in sw.__all__ if is_dataclass(getattr(sw, name))]


@pytest.mark.parametrize(("function", "docstring"), [row[1:] for row in CALLED], ids=[row[0] for row in CALLED])
def test_the_docstring_describes_every_argument(function: Any, docstring: str) -> None:
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    assert docstring
    assert [name for name in names if not re.search(rf"\b{name}s?\b", docstring)] == []


def test_there_are_functions_to_look_at() -> None:
    assert {"simulate", "certify", "check_log", "Agent.learn", "Client.decide", "RaySet"} <= {row[0] for row in CALLED}


def choices(kind: Any) -> set[Any]:
    """Return what a type lets one choose from; nothing where any text will do."""
    if get_origin(kind) is Literal:
        return set(get_args(kind))
    return set().union(*(choices(each) for each in get_args(kind)))


CHOICES: dict[tuple[str, str], set[str]] = {
    **{(name, "backend"): set(BACKENDS) for name in ("simulate", "certify", "verify_certificate")},
    ("evaluate_on_log", "estimators"): set(ESTIMATORS),
    ("evaluate_on_log", "primary_estimator"): {"dr", "ips"},
    ("Agent", "learning_order"): {"decision", "arrival"},
}


@pytest.mark.parametrize(("name", "argument"), CHOICES)
def test_what_is_one_of_some_names_is_a_literal(name: str, argument: str) -> None:
    value = getattr(sw, name)
    hints = get_type_hints(value.__init__ if inspect.isclass(value) else value)
    assert choices(hints[argument]) == CHOICES[name, argument]


def test_nothing_that_has_a_word_for_its_usual_value_takes_any_text() -> None:
    """A usual value that is a word says that there are others like it: a choice."""
    worded = [
        (name, one.name, one.annotation)
        for name, function, _ in [*CALLED, *((name, getattr(sw, name), "") for name in DATA)]
        for one in inspect.signature(function).parameters.values()
        if isinstance(one.default, str) and one.default
    ]
    assert len(worded) > 20
    assert [row for row in worded if row[2] is str] == []
