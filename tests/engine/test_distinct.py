"""Kernels marked `distinct` reach nothing that they write by two of their arguments, whoever calls them.

LLVM is told so and asks no more: where it is not true, machine code may read what is not written yet.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.compile import distinct
from stagewise.models.regression import update_root

KERNELS = ("stagewise.engine.", "stagewise.models.", "stagewise.rules.")
FEATURES = np.random.default_rng(0).normal(size=(5, 3)) / 3.0
AT_ZERO, APART = sw.SafeAction(features=np.zeros(3)), sw.SafeAction(features=[0.3, 0.0, 0.1], reward=0.1, cost=0.1)
UNKNOWN = sw.SafeAction(features=[0.3, 0.0, 0.1])
SETTINGS: dict[str, Any] = {"threshold": 0.6, "noise": 0.1}


def list_modules() -> list[Any]:
    """Return every module that has kernels."""
    found = [module.name for module in pkgutil.walk_packages(sw.__path__, "stagewise.")]
    return [importlib.import_module(name) for name in found if name.startswith(KERNELS)]


def arrays_in(given: Any) -> Iterator[np.ndarray]:
    """Yield every array among some arguments, also those that stand in tuples."""
    if isinstance(given, np.ndarray):
        yield given
    elif isinstance(given, tuple):
        for entry in given:
            yield from arrays_in(entry)


def watched(function: Callable[..., Any], seen: set[str]) -> Callable[..., Any]:
    """Return a kernel that says so where it changed what two of its arguments reach."""

    @wraps(function)
    def played(*args: Any) -> Any:
        seen.add(function.__name__)
        arrays = list(arrays_in(args))
        before = [array.tobytes() for array in arrays]
        answer = function(*args)
        changed = [array.tobytes() != old for array, old in zip(arrays, before, strict=True)]
        for (one, first), (other, second) in combinations(zip(arrays, changed, strict=True), 2):
            if (first or second) and np.shares_memory(one, other):
                raise AssertionError(f"{function.__name__} reaches what it writes by two of its arguments")
        return answer

    return played


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Watch every kernel that is marked, wherever it is called; return the names of those that were called."""
    called: set[str] = set()
    for loaded in list_modules():
        for name, value in list(vars(loaded).items()):
            if getattr(value, "distinct", False) is True:
                monkeypatch.setattr(loaded, name, watched(value, called))
    return called


def marked() -> set[str]:
    """Return the names of all kernels that are marked."""
    values = [value for module in list_modules() for value in vars(module).values()]
    return {value.__name__ for value in values if getattr(value, "distinct", False) is True}


def policies() -> list[Any]:
    """Return policies that between them call every marked kernel, on each kind of safe action."""
    safe = [AT_ZERO, APART, UNKNOWN]
    on_rays = [
        kind(safe_action=index, **SETTINGS)
        for kind in (sw.LCLUCB, sw.ROFUL, sw.SafePosteriorSampling)
        for index in safe
    ]
    return [
        *on_rays,
        sw.SafeLTS(safe_action=APART, **SETTINGS),
        sw.OPLB(safe_action=APART, **SETTINGS),
        sw.KernelOPLB(safe_action=APART, kernel=sw.RBF(lengthscale=0.5), norm_bound=1.0, **SETTINGS),
    ]


def worlds(policy: Any) -> list[Any]:
    """Return a world whose actions are always the same, and one with its own in each round."""
    fixed = sw.FiniteSet(FEATURES) if policy.mixes else sw.RaySet(FEATURES)
    fresh = (sw.RandomFiniteSet if policy.mixes else sw.RandomRaySet)(count=5, dimension=3)
    settings: dict[str, Any] = {"reward": [0.5, 0.2, 0.1], "cost": [0.2, 0.5, 0.1], "noise": 0.1}
    return [sw.LinearWorld(actions=actions, **settings) for actions in (fixed, fresh)]


@pytest.mark.skipif(hasattr(update_root, "py_func"), reason="machine code cannot be watched: make test-plain")
def test_no_kernel_that_is_marked_distinct_writes_what_two_of_its_arguments_reach(seen: set[str]) -> None:
    for policy in policies():
        for world in worlds(policy):
            sw.simulate(policy, world, rounds=12, runs=1)
    user = sw.ContextWorld(reward=[[0.1, 0.1], [0.3, 0.1]], cost=[[0.1, 0.0], [0.1, 0.1]], features="plain")
    own = sw.SafeContextPosteriorSampling(
        actions=2, context=1, safe_action=sw.SafeAction(arm=0, cost=0.1), threshold=0.3, cost_model="logistic"
    )
    sw.simulate(own, user, rounds=400, runs=1)
    assert seen == marked() != set()


def test_one_that_does_is_found() -> None:
    @distinct
    def add(one: np.ndarray, other: np.ndarray) -> None:
        one += other

    numbers, checked = np.arange(6.0), watched(add, set())
    checked(numbers[:3], numbers[3:])
    with pytest.raises(AssertionError, match="add reaches"):
        checked(numbers[:4], numbers[2:])
