"""OPNLB keeps the contract of policies that mix: over arms and over features, by every method."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.contracts.policy import ROUNDS, ArmsWorld, Case, LinearWorld, MixtureContract
from tests.contracts.test_policies import ARMS, COSTS, KNOWN, PLACES, REWARD, SAFE_ARM, baseline, limits

from stagewise import OPNLB, FiniteFunctionClass

NAMES = ("spend", "wait", "clicks")


def around(truth: Any, count: int, seed: int, known: bool) -> np.ndarray:
    """Return a class of tables: the truth among random ones, some of which agree with it at the safe arm."""
    random = np.random.default_rng(seed)
    table = np.clip(truth + 0.3 * random.normal(size=(count, len(truth))), 0.0, 1.0)
    table[: count if known else count // 2, SAFE_ARM] = truth[SAFE_ARM]
    table[count // 2] = truth
    return table


def arms_problems() -> Iterator[tuple[str, ArmsWorld, dict[str, Any]]]:
    for count in (1, 3):
        world = ArmsWorld(SAFE_ARM, ARMS[: 1 + count])
        for what, known in KNOWN.items():
            costs = {NAMES[j]: around(ARMS[1 + j], 6, 1 + j, known[1]) for j in range(count)}
            settings = {
                "reward_class": around(ARMS[0], 8, 0, known[0]),
                "cost_class": costs if count == 3 else costs["spend"],
                "safe_action": baseline(world.means(SAFE_ARM), known, arm=SAFE_ARM),
                "threshold": limits(world.means(SAFE_ARM)[1:], [0.7, 0.6, 0.7]),
                "noise": 0.1,
            }
            yield f"{count} limits, {what}", world, settings


def linear_problems() -> Iterator[tuple[str, LinearWorld, dict[str, Any]]]:
    """Yield worlds whose fresh actions are all listed in the class, so that it is a table that can be saved."""
    for count, index in [(1, "off origin"), (3, "origin"), (3, "off origin")]:
        world = LinearWorld(np.array(PLACES[index]), np.array([REWARD, *COSTS[:count]]), finite=True)
        listed = np.vstack([world.safe, *(world.targets(round_) for round_ in range(ROUNDS))])
        classes = []
        for truth in world.parameters:
            others = truth + 0.4 * np.random.default_rng(len(classes)).normal(size=(12, truth.size))
            if np.any(world.safe):
                others -= np.outer((others - truth) @ world.safe, world.safe) / (world.safe @ world.safe)
            classes.append(FiniteFunctionClass(np.vstack([truth, others]) @ listed.T, features=listed))
        values = world.means(world.safe)
        settings = {
            "reward_class": classes[0],
            "cost_class": classes[1:],
            "safe_action": baseline(values, (True, True), features=world.safe),
            "threshold": limits(values[1:], [0.2, 0.3, 0.25]),
            "noise": world.noise,
        }
        yield f"{count} limits, {index}", world, settings


def cases(problems: Any, kind: type[OPNLB] = OPNLB, **more: Any) -> Any:
    """Parametrise the contract; function-level rows allow mixtures of many."""
    made = [
        Case(name, partial(kind, **settings, **more), world, True, support(world, kind, more))
        for name, world, settings in problems
    ]
    return pytest.mark.parametrize("case", made, ids=str)


def support(world: Any, kind: type[OPNLB], more: dict[str, Any]) -> int:
    few = world.means(world.safe).size + (more.get("optimism") == "directional")
    return few if more.get("method", kind.method) == "pointwise" else 7


@cases([*list(arms_problems())[:7:6], *list(linear_problems())[1:]])
class TestOPNLB(MixtureContract):
    pass


@cases([*list(arms_problems())[1::6], *list(linear_problems())[:1]], optimism="directional")
class TestOPNLBDirectional(MixtureContract):
    pass


@cases([*list(arms_problems())[::7], *list(linear_problems())[:1]], method="rows")
class TestOPNLBRowByRow(MixtureContract):
    pass
