"""Every policy keeps the contract: with one limit and with three, whatever is known of the safe action."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.contracts.policy import (
    ArmsWorld,
    Case,
    LinearWorld,
    MixtureContract,
    PolicyContract,
    RaysContract,
    SafeContract,
    over,
)

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    UCB,
    AlwaysSafe,
    AtLeast,
    LinUCB,
    SafeAction,
    SafeArmPosteriorSampling,
    SafeLTS,
    SafePosteriorSampling,
)

REWARD = [0.6, 0.4, -0.3]
COSTS = [[0.5, -0.3, 0.4], [-0.2, 0.6, 0.1], [0.3, 0.2, 0.6]]
PLACES = {"origin": [0.0, 0.0, 0.0], "off origin": [0.4, 0.3, 0.2]}

ARMS = np.array([[0.6, 0.3, 0.9, 0.8], [0.5, 0.1, 0.95, 0.3], [0.2, 0.1, 0.4, 0.9], [0.5, 0.9, 0.6, 0.3]])
SAFE_ARM = 1

SOME = (0, 3, 6, 7, 9)  # of the linear problems: each baseline, one limit and three, at the origin and elsewhere
SOME_ARMS = (0, 3, 5, 6)
FEW = (0, 7)  # of a variant: the arithmetic that it shares with its kind is held by that

KNOWN = {
    "known": (True, True),
    "reward unknown": (False, True),
    "cost unknown": (True, False),
    "unknown": (False, False),
}


def limits(costs: Any, slack: Any) -> Any:
    """Return one nameless limit, or three named ones of which the last is from below."""
    if len(costs) == 1:
        return costs[0] + slack[0]
    return {"spend": costs[0] + slack[0], "wait": costs[1] + slack[1], "clicks": AtLeast(costs[2] - slack[2])}


def baseline(values: Any, known: tuple[bool, bool], **where: Any) -> SafeAction:
    reward, *costs = [float(value) for value in values]
    named = costs[0] if len(costs) == 1 else dict(zip(["spend", "wait", "clicks"], costs, strict=True))
    return SafeAction(reward=reward if known[0] else None, cost=named if known[1] else None, **where)


def linear_problems(finite: bool) -> Iterator[tuple[str, LinearWorld, dict[str, Any]]]:
    """Yield a name, a world and the settings that are true in it."""
    for count in (1, 3):
        parameters = np.array([REWARD, *COSTS[:count]])
        for place, features in PLACES.items():
            world = LinearWorld(np.array(features), parameters, finite)
            values = world.means(world.safe)
            for what, known in KNOWN.items():
                if place == "off origin" or what == "known":
                    yield (
                        f"{count} limits, {place}, {what}",
                        world,
                        {
                            "safe_action": baseline(values, known, features=features),
                            "threshold": limits(values[1:], [0.4, 0.5, 0.45]),
                            "noise": world.noise,
                            "ridge": 0.1,
                        },
                    )


def arms_problems() -> Iterator[tuple[str, ArmsWorld, dict[str, Any]]]:
    for count in (1, 3):
        world = ArmsWorld(SAFE_ARM, ARMS[: 1 + count])
        for what, known in KNOWN.items():
            threshold = limits(world.means(SAFE_ARM)[1:], [0.7, 0.6, 0.7])
            yield (
                f"{count} limits, {what}",
                world,
                {
                    "arms": 4,
                    "safe_action": baseline(world.means(SAFE_ARM), known, arm=SAFE_ARM),
                    "threshold": threshold,
                    "noise": 0.1,
                },
            )


def cases(kind: Callable[..., Any], problems: Any, some: Any = SOME, mixes: bool = False, **settings: Any) -> Any:
    """Parametrise a contract with a policy in some of these problems, and in the slow lane in all."""
    random, more = mixes or kind in (SafeLTS, SafePosteriorSampling), settings.get("optimism") == "directional"
    made = [
        Case(name, partial(kind, **told, **settings), world, random, (len(world.means(world.safe)) + more) * mixes)
        for name, world, told in problems
    ]
    return over(made, some)


@cases(LCLUCB, linear_problems(finite=False))
class TestLCLUCB(RaysContract):
    pass


@cases(
    LCLUCB, linear_problems(finite=False), FEW, radius="paper", reward_confidence_scale=2.0, cost_confidence_scale=1.2
)
class TestLCLUCBOfThePaper(RaysContract):
    pass


@cases(LCLUCB, linear_problems(finite=False), (0, 9), per_action_bounds=True)
class TestLCLUCBWithOwnSets(RaysContract):
    pass


@cases(ROFUL, linear_problems(finite=False), FEW)
class TestROFUL(RaysContract):
    pass


@cases(SafeLTS, linear_problems(finite=False), inflation="theory")
class TestSafeLTS(RaysContract):
    pass


@cases(SafeLTS, linear_problems(finite=False), FEW, inflation="none")
class TestSafeLTSWithoutInflation(RaysContract):
    pass


@cases(SafeLTS, linear_problems(finite=False), FEW, inflation="authors")
class TestSafeLTSOfTheAuthors(RaysContract):
    pass


@cases(SafePosteriorSampling, linear_problems(finite=False), posterior_scale=3.0)
class TestCAPS(RaysContract):
    pass


@cases(SafePosteriorSampling, linear_problems(finite=True), mixes=True, mixtures=True)
class TestCAPSOnMixtures(MixtureContract):
    pass


@cases(OPLB, linear_problems(finite=True), mixes=True)
class TestOPLB(MixtureContract):
    pass


@cases(OPLB, linear_problems(finite=True), FEW, mixes=True, optimism="directional")
class TestOPLBDirectional(MixtureContract):
    pass


@cases(OPB, arms_problems(), SOME_ARMS, mixes=True)
class TestOPB(MixtureContract):
    pass


@cases(OPB, arms_problems(), (0, 5), mixes=True, optimism="directional")
class TestOPBDirectional(MixtureContract):
    pass


def ranged_problems() -> Iterator[tuple[str, ArmsWorld, dict[str, Any]]]:
    for name, world, settings in arms_problems():
        yield name, world, {key: value for key, value in settings.items() if key != "noise"}


@cases(OPB, ranged_problems(), (0, 4), mixes=True, interval="kl")
class TestOPBWithKL(MixtureContract):
    pass


# three unknown costs take more than 200 rounds to leave the safe arm with
@cases(SafeArmPosteriorSampling, [*ranged_problems()][:6], (0, 4), mixes=True)
class TestArmsCAPS(MixtureContract):
    pass


@cases(SafeArmPosteriorSampling, [*arms_problems()][:6], (0, 4), mixes=True, interval="hoeffding")
class TestArmsCAPSWithNoise(MixtureContract):
    pass


UNLIMITED_WORLD = LinearWorld(np.zeros(3), np.array([REWARD]), finite=True)
UNLIMITED_ARMS = ArmsWorld(-1, ARMS[:1])


@pytest.mark.parametrize("case", [Case("finite", partial(LinUCB, noise=0.05, ridge=0.1), UNLIMITED_WORLD)], ids=str)
class TestLinUCB(PolicyContract):
    def test_the_action_is_the_one_listed(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            assert one.decision.step_size == 1.0
            assert one.decision.message is None
            assert np.array_equal(one.decision.action, case.world.targets(round_)[one.decision.action_index])

    def test_no_safe_action_is_spoken_of(self, case: Case) -> None:
        assert "safe" not in case.rounds[0].decision.explain()


@pytest.mark.parametrize(
    "case",
    [
        Case("arms", partial(UCB, arms=4), UNLIMITED_ARMS),
        Case("horizon", partial(UCB, arms=4, horizon=200, interval="hoeffding"), UNLIMITED_ARMS),
    ],
    ids=str,
)
class TestUCB(PolicyContract):
    def test_the_arm_is_the_one_listed(self, case: Case) -> None:
        for one in case.rounds:
            assert one.decision.action == one.decision.action_index
            assert one.decision.message is None


def always_safe() -> list[Case]:
    problems = [*linear_problems(finite=False), *arms_problems()][::3]
    names = ("safe_action", "threshold")
    return [
        Case(name, partial(AlwaysSafe, **{key: settings[key] for key in names}), world)
        for name, world, settings in problems
    ]


@pytest.mark.parametrize("case", always_safe(), ids=str)
class TestAlwaysSafe(SafeContract):
    def test_something_is_dared(self, case: Case) -> None:
        """It never dares anything; that is its point."""
        assert all(one.decision.message for one in case.rounds)
