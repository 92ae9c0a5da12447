"""Every setting is read or refused, and told in the place where an editor shows it."""

import ast
import inspect
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.policies.saved_policies import get_policies
from stagewise.problem.errors import ErrorCode

ORIGIN = sw.SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0)
ZERO, OFF = sw.SafeAction(features=[0.0, 0.0]), sw.SafeAction(features=[0.1, 0.0], reward=0.05, cost=0.02)
ARM = sw.SafeAction(arm=0, reward=0.1, cost=0.1)
DEAR = sw.SafeAction(arm=0, reward=0.1, cost=0.7)
CHEAP = sw.SafeAction(arm=0, reward=0.0, cost=0.55)
FEATURED: dict[str, Any] = {"safe_action": ZERO, "threshold": 0.3, "noise": 0.1}
ARMED: dict[str, Any] = {"arms": 3, "safe_action": ARM, "threshold": 0.3}
TABLES: dict[str, Any] = {
    "reward_class": [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]],
    "cost_class": [[0.1, 0.2, 0.6], [0.1, 0.6, 0.2]],
    "safe_action": ARM,
    "threshold": 0.3,
}
BASES: dict[str, dict[str, Any]] = {
    "AlwaysSafe": {"safe_action": ZERO, "threshold": 0.3},
    "KernelOPLB": FEATURED | {"safe_action": ORIGIN, "kernel": sw.RBF(lengthscale=1.0), "norm_bound": 1.0},
    "LinUCB": {"noise": 0.1},
    "SafeArmPosteriorSampling": ARMED,
    "SafeContextPosteriorSampling": {"actions": 3, "context": 1, "safe_action": ARM, "threshold": 0.3},
    "OPB": ARMED,
    "OPNLB": TABLES,
    "UCB": {"arms": 3},
}
OTHER: dict[str, Any] = {
    "action_bound": 2.0,
    "actions": 4,
    "separate_models": True,
    "arms": 4,
    "by": {"cost": 0},
    "blocks": 2,
    "max_points": 1,
    "context": 2,
    "cost_model": "linear",
    "drift": {"cost": "0.1/1d"},
    "reward_half_life": 86_400.0,
    "initial_actions": 2,
    "levels": (3,),
    "reward_model": "rates",
    "score_buckets": {"cost": [6, 1, 1]},
    "segments": 1,
    "bounds_solver_gap": False,
    "mean_cost_bound": 0.4,
    "cost_class": [[0.1, 0.2, 0.6], [0.1, 0.3, 0.2]],
    "cost_noise": {"cost": 0.1},
    "cost_confidence_scale": 1.5,
    "delta": 0.01,
    "dimension": 3,
    "horizon": 3,
    "inflation": "none",
    "mixtures": True,
    "max_regret_ratio": 1.0,
    "mean_reward_bound": 0.5,
    "posterior_scale": 3.0,
    "bounded_outcomes": True,
    "kernel": sw.RBF(lengthscale=2.0),
    "noise": 0.3,
    "norm_bound": 0.9,
    "novelty_threshold": 0.5,
    "optimism": "directional",
    "per_action_bounds": True,
    "reward_class": [[0.1, 0.5, 0.9], [0.1, 0.3, 0.5]],
    "radius": "logdet",
    "rare_costs": True,
    "reward_confidence_scale": 5.0,
    "ridge": 2.0,
    "safe_action": OFF,
    "slope_scale": 0.1,
    "split_delta": False,
    "directions": 1,
    "threshold": 0.4,
    "check_assumptions": False,
}
OTHER_OF: dict[tuple[str, str], Any] = {
    ("LinUCB", "safe_action"): sw.SafeAction(features=[0.1, 0.0], cost=0.1),
    ("UCB", "safe_action"): sw.SafeAction(arm=0, cost=0.1),
    ("SafeArmPosteriorSampling", "safe_action"): sw.SafeAction(arm=1, reward=0.2, cost=0.0),
    ("SafeArmPosteriorSampling", "interval"): "hoeffding",
    ("SafeContextPosteriorSampling", "safe_action"): sw.SafeAction(arm=1, reward=0.2, cost=0.0),
    ("OPB", "safe_action"): sw.SafeAction(arm=1, reward=0.2, cost=0.0),
    ("OPNLB", "safe_action"): sw.SafeAction(arm=0, reward=0.1),
    ("OPLB", "method"): "socp",
    ("OPNLB", "method"): "rows",
    ("OPB", "interval"): "hoeffding",
    ("UCB", "interval"): "hoeffding",
}
BESIDES: dict[tuple[str, str], dict[str, Any]] = {  # what must be set for a setting to matter
    ("LinUCB", "safe_action"): {"threshold": sw.TimesSafe(1.5), "safe_action": OFF},
    ("UCB", "safe_action"): {"threshold": sw.TimesSafe(1.5), "safe_action": sw.SafeAction(arm=0, cost=0.2)},
    ("OPB", "split_delta"): {"threshold": [0.3, 0.4], "safe_action": sw.SafeAction(arm=0, cost=[0.1, 0.1])},
    ("OPB", "mean_cost_bound"): {"interval": "hoeffding"},
    ("OPB", "check_assumptions"): {"noise": 0.01},
    ("DOSLB", "check_assumptions"): {"noise": 0.01},
    ("KernelOPLB", "novelty_threshold"): {"check_assumptions": False},
    ("KernelOPLB", "max_points"): {"check_assumptions": False},
    ("LCLUCB", "directions"): {"check_assumptions": False, "bounds_solver_gap": False, "noise": 0.3},
    ("ROFUL", "directions"): {"check_assumptions": False, "bounds_solver_gap": False, "noise": 0.3},
    ("OPNLB", "check_assumptions"): {"noise": 0.01},
    ("SafeLTS", "cost_confidence_scale"): {"check_assumptions": False},
    ("SafePosteriorSampling", "bounded_outcomes"): {"noise": 0.5, "check_assumptions": False},
    ("SafeContextPosteriorSampling", "by"): {
        "segments": 1,
        "by": {"reward": 0},
        "reward_model": "rates",
        "check_assumptions": False,
    },
    ("SafeContextPosteriorSampling", "score_buckets"): {"segments": 1, "by": {"cost": 0}, "check_assumptions": False},
    ("SafeContextPosteriorSampling", "drift"): {"check_assumptions": False},
    ("SafeContextPosteriorSampling", "reward_half_life"): {"check_assumptions": False},
    ("SafeContextPosteriorSampling", "norm_bound"): {"check_assumptions": False},
    ("SafeContextPosteriorSampling", "ridge"): {"check_assumptions": False},
    ("SafeContextPosteriorSampling", "slope_scale"): {"cost_model": "logistic", "check_assumptions": False},
    ("SafeContextPosteriorSampling", "mean_cost_bound"): {"check_assumptions": False},
    ("SafeContextPosteriorSampling", "initial_actions"): {"check_assumptions": False},
    ("SafeContextPosteriorSampling", "max_regret_ratio"): {
        "threshold": 0.99,
        "safe_action": CHEAP,
        "posterior_scale": 0.0,
        "delta": 0.5,
    },
    ("SafeContextPosteriorSampling", "posterior_scale"): {"threshold": 0.9, "safe_action": DEAR},
    ("SafePosteriorSampling", "rare_costs"): {"mixtures": True},
    ("SafePosteriorSampling", "blocks"): {"mixtures": True, "rare_costs": True},
    ("SafeArmPosteriorSampling", "max_regret_ratio"): {
        "noise": 0.01,
        "interval": "hoeffding",
        "check_assumptions": False,
        "posterior_scale": 0.0,
    },
    ("SafeArmPosteriorSampling", "split_delta"): {
        "threshold": [0.3, 0.4],
        "safe_action": sw.SafeAction(arm=0, cost=[0.1, 0.1]),
    },
    ("SafeArmPosteriorSampling", "check_assumptions"): {"noise": 0.01, "interval": "hoeffding"},
    ("OPB", "horizon"): {"interval": "hoeffding"},
    ("UCB", "horizon"): {"interval": "hoeffding"},
    ("SafeArmPosteriorSampling", "horizon"): {"interval": "hoeffding"},
    ("SafeArmPosteriorSampling", "mean_cost_bound"): {"interval": "hoeffding"},
}


def other(name: str, setting: str) -> Any:
    """Return another value of a setting than the usual one; a new setting needs a row above."""
    return OTHER_OF[name, setting] if (name, setting) in OTHER_OF else OTHER[setting]


def offers(policy: Any) -> list[Any]:
    """Return sets of actions to choose from, each for some rounds."""
    if hasattr(policy, "segments"):
        return [sw.ContextVector(np.linspace(0.3, 0.5, policy.context), segments=[4] * policy.segments)]
    if hasattr(policy, "arms") or getattr(policy, "functions", None) is not None:
        return [sw.ArmSet(getattr(policy, "arms", 3))]
    actions = [[0.6, 0.2], [0.1, 0.8], [-0.5, 0.4]]
    return [sw.RaySet(actions), sw.FiniteSet(actions), sw.BallSet(1.0)]


def behaviour(name: str, **settings: Any) -> list[str]:
    """Return what a policy with these settings decides and promises, or refuses; outcomes are noisier than declared."""
    policy = get_policies()[name](**settings)
    told = [str(getattr(policy, "evaluation_thresholds", policy.thresholds))]
    for actions in offers(policy):
        agent, chance = sw.Agent(policy, seed=3), np.random.default_rng(7)
        try:
            rounds = 150 if isinstance(actions, sw.ContextVector) else 40
            for _ in range(
                rounds if isinstance(actions, sw.ArmSet | sw.ContextVector) else 12 if actions.is_list else 6
            ):
                decision = agent.decide(actions)
                told.append(str(decision.to_dict()))
                agent.learn(decision, reward=chance.random(), cost=chance.random(len(policy.thresholds.names)))
            agent.learn(agent.decide(actions), reward=chance.random())  # the cost comes later, if ever
            told.append(str(agent.buffered_count) + str(agent.decide(actions).to_dict()))
        except sw.StagewiseError as error:
            told.append(str(error))
    return told


@cache
def usual(name: str) -> list[str]:
    """Return what a policy with its usual settings does."""
    return behaviour(name, **BASES.get(name, FEATURED))


SETTINGS = [(name, field.name) for name, kind in get_policies().items() for field in fields(kind) if field.init]


@pytest.mark.long
@pytest.mark.parametrize(("name", "setting"), SETTINGS, ids=[".".join(pair) for pair in SETTINGS])
def test_a_setting_makes_a_difference_or_is_refused(name: str, setting: str) -> None:
    besides = BESIDES.get((name, setting), {})
    base = BASES.get(name, FEATURED) | besides
    try:
        changed = behaviour(name, **base | {setting: other(name, setting)})
    except sw.InvalidProblem as error:
        assert setting in str(error)  # noqa: PT017 - a refusal is one of two good ends
        return
    assert changed != (behaviour(name, **base) if besides else usual(name))


@pytest.mark.parametrize("kind", [sw.ROFUL, sw.DOSLB, sw.SafeLTS])
def test_a_scale_of_optimism_that_is_not_inflated_is_refused(kind: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        kind(**FEATURED, reward_confidence_scale=5.0)


@pytest.mark.parametrize("name", ["LCLUCB", "OPLB", "KernelOPLB", "OPB", "OPNLB"])
def test_a_scale_beside_directional_optimism_is_refused(name: str) -> None:
    settings = BASES.get(name, FEATURED) | {"reward_confidence_scale": 5.0}
    get_policies()[name](**settings)
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        get_policies()[name](**settings, optimism="directional")


@pytest.mark.parametrize("kind", [sw.LCLUCB, sw.OPLB, sw.LinUCB])
def test_a_bound_on_actions_that_no_radius_rests_on_is_refused(kind: Any) -> None:
    settings = FEATURED | {"action_bound": 2.0}
    kind(**settings, radius="paper")
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        kind(**settings)


RATES: dict[str, Any] = BASES["SafeContextPosteriorSampling"] | {"context": 0, "reward_model": "rates"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm_bound": 2.0}, ErrorCode.UNUSED_SETTING),
        ({"ridge": 3.0}, ErrorCode.UNUSED_SETTING),
        ({"segments": 2}, ErrorCode.UNUSED_SETTING),
        ({"segments": 2, "by": {"cost": 0}}, ErrorCode.UNUSED_SETTING),
    ],
)
def test_actions_in_a_context_refuse_what_no_model_of_theirs_reads(settings: dict[str, Any], message: str) -> None:
    sw.SafeContextPosteriorSampling(**RATES)
    with refused(sw.InvalidProblem, message):
        sw.SafeContextPosteriorSampling(**RATES | settings)


@pytest.mark.parametrize("settings", [{"norm_bound": 2.0}, {"ridge": 3.0}])
def test_a_problem_of_rates_refuses_settings_of_regressions(settings: dict[str, float]) -> None:
    told: dict[str, Any] = {"action_names": ["a", "b"], "safe_name": "a", "reward": sw.Reward("click")}
    told |= {"limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}}
    sw.Problem(**told, context=["age"], settings=settings)
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        sw.Problem(**told, settings=settings)


@pytest.mark.parametrize(
    "make",
    [
        lambda **told: sw.LinUCB(noise=0.1, safe_action=ZERO, **told),
        lambda **told: sw.UCB(arms=3, safe_action=ARM, **told),
    ],
)
def test_a_safe_action_that_no_threshold_refers_to_is_refused(make: Any) -> None:
    make(threshold=0.3)
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        make()


def shown_settings(kind: type) -> set[str]:
    """Return the settings that have a docstring below them, where an editor finds it."""
    found: set[str] = set()
    for base in kind.__mro__:
        if is_dataclass(base):
            (tree,) = ast.parse(inspect.getsource(base)).body
            assert isinstance(tree, ast.ClassDef)
            for one, below in zip(tree.body, tree.body[1:], strict=False):
                told = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and told:
                    found.add(one.target.id)
    return found


FOUND = ("SimulationCertificate", "Result")  # what came out, and no settings
KINDS = [name for name in sw.__all__ if is_dataclass(getattr(sw, name)) and name not in FOUND]


@pytest.mark.parametrize("name", KINDS)
def test_every_setting_is_told_where_an_editor_shows_it(name: str) -> None:
    kind = getattr(sw, name)
    assert {field.name for field in fields(kind) if field.init} <= shown_settings(kind)


@pytest.mark.parametrize("name", [name for name in sw.__all__ if name.endswith("World") and name != "World"])
def test_every_setting_of_a_world_is_told(name: str) -> None:
    kind = getattr(sw, name)
    told = inspect.getdoc(kind) or ""
    for setting in inspect.signature(kind).parameters:
        assert f"{setting}:" in told
