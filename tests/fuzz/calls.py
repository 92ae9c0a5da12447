"""One valid call of every public class and function: what the fuzzers put hostile values into."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw

LARGE = ("2**31", "uint64")  # counts that are allowed and would take for ever


class Call(NamedTuple):
    """A callable with arguments that it takes."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    patient: tuple[str, ...] = ()  # arguments for which a large count means long work


SAFE = sw.SafeAction(features=[0.5, 0.5], reward=0.2, cost=0.1)
SAFE_ARM = sw.SafeAction(arm=0, reward=0.2, cost=0.1)
EYE = [[1.0, 0.0], [0.0, 1.0]]
ARMS = sw.ArmsWorld(reward=[0.2, 0.7], cost=[0.1, 0.3])
LINEAR = sw.LinearWorld(reward=[0.3, 0.1], cost=[0.1, 0.1], actions=sw.RaySet(EYE), noise=0.1)
TABLE = sw.FiniteSetWorld(features=EYE, reward=[0.2, 0.7], cost=[0.1, 0.3])
PULLS = sw.OPB(arms=2, safe_action=SAFE_ARM, threshold=0.5)
RAYS = sw.LCLUCB(safe_action=SAFE, threshold=0.5, noise=0.1)

WINDOWS = {"cost": sw.OutcomeWindow("7d", missing=0.0)}
SNAPSHOT = sw.Agent(PULLS).replica_snapshot()

LOGGED = sw.Problem(
    action_names=["no", "yes"],
    safe_name="no",
    context=["age"],
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, model="rates")},
)
LOG = {"action": ["no", "yes"] * 60, "age": [i / 120 for i in range(120)], "click": [0, 1, 0, 0] * 30}
LOG["opt_out"] = [int(i == 7) for i in range(120)]

SHARED = {
    "safe_action": SAFE,
    "threshold": 0.5,
    "noise": 0.1,
    "delta": 0.05,
    "ridge": 1.0,
    "mean_cost_bound": 1.0,
    "reward_confidence_scale": None,
    "cost_confidence_scale": 1.0,
    "split_delta": True,
}
FEATURED = {**SHARED, "norm_bound": 1.0, "action_bound": 1.0, "radius": "joint"}
UNTAKEN = {"reward_confidence_scale", "cost_confidence_scale", "split_delta"}  # by CAPS
OPTIMISTIC = {**FEATURED, "optimism": "inflated"}
PULLED = {
    "arms": 2,
    "safe_action": SAFE_ARM,
    "threshold": 0.5,
    "horizon": 10,
    "noise": 0.5,
    "delta": 0.05,
    "interval": "hoeffding",
}
PLAYED = {"rounds": 3, "seed": 0, "backend": "python", "executor": None, "progress": False, "out": None}


def twice(x: Any) -> Any:
    """Be a function of a class."""
    return x[0] * 0.5


CONSTRUCTORS: dict[str, Call] = {
    "AlwaysSafe": Call(sw.AlwaysSafe, {"safe_action": SAFE_ARM, "threshold": 0.5}),
    "ArmSet": Call(sw.ArmSet, {"count": 3}),
    "ArmsWorldFamily": Call(sw.ArmsWorldFamily, {"world": ARMS, "safe": 0, "seed": 0, "spread": 0.5}),
    "ArmsWorld": Call(sw.ArmsWorld, {"reward": [0.1, 0.7], "cost": [0.0, 0.2], "outcomes": "gaussian", "noise": 0.1}),
    "AtLeast": Call(sw.AtLeast, {"value": 0.1}),
    "BallSet": Call(sw.BallSet, {"radius": 1.0, "center": [0.0, 0.0]}),
    "BoxSet": Call(sw.BoxSet, {"low": [0.0, 0.0], "high": [1.0, 1.0]}),
    "SafePosteriorSampling": Call(
        sw.SafePosteriorSampling,
        {
            **{name: value for name, value in FEATURED.items() if name not in UNTAKEN},
            "mixtures": True,
            "posterior_scale": 0.7,
            "max_regret_ratio": 5.0,
            "mean_reward_bound": 1.0,
            "bounded_outcomes": False,
        },
    ),
    "SafeArmPosteriorSampling": Call(
        sw.SafeArmPosteriorSampling,
        {
            **{name: value for name, value in PULLED.items() if name != "horizon"},
            "mean_cost_bound": 1.0,
            "posterior_scale": 0.7,
            "max_regret_ratio": 5.0,
            "mean_reward_bound": 1.0,
        },
    ),
    "DOSLB": Call(sw.DOSLB, FEATURED),
    "Client": Call(
        sw.Client,
        {
            "url": "http://127.0.0.1:9",
            "key": "sw_a_b",
            "experiment": "mail",
            "safe": "nothing",
            "timeout": 1.0,
            "max_attempts": 2,
            "retry_delay": 0.1,
        },
    ),
    "EllipsoidSet": Call(sw.EllipsoidSet, {"shape": EYE, "center": [0.0, 0.0]}),
    "FiniteSet": Call(sw.FiniteSet, {"features": EYE}),
    "FiniteFunctionClass": Call(sw.FiniteFunctionClass, {"functions": EYE, "features": EYE}),
    "FiniteFunctionClass of callables": Call(sw.FiniteFunctionClass, {"functions": [twice], "features": EYE}),
    "KernelOPLB": Call(
        sw.KernelOPLB,
        {
            **SHARED,
            "kernel": sw.RBF(lengthscale=0.5),
            "norm_bound": 1.0,
            "optimism": "inflated",
            "novelty_threshold": 1e-10,
            "max_points": 20,
        },
    ),
    "LCLUCB": Call(sw.LCLUCB, {**OPTIMISTIC, "directions": 8, "bounds_solver_gap": True}),
    "LinUCB": Call(
        sw.LinUCB,
        {
            "noise": 0.1,
            "delta": 0.05,
            "norm_bound": 1.0,
            "action_bound": 1.0,
            "ridge": 1.0,
            "radius": "joint",
            "safe_action": SAFE,
            "threshold": 0.5,
        },
    ),
    "LinearKernel": Call(sw.LinearKernel, {}),
    "LinearWorld": Call(
        sw.LinearWorld,
        {
            "reward": [0.3, 0.1],
            "cost": [0.1, 0.1],
            "actions": sw.RaySet(EYE),
            "noise": 0.1,
            "outcomes": "gaussian",
        },
    ),
    "Matern": Call(sw.Matern, {"lengthscale": 0.5, "smoothness": 1.5}),
    "OPB": Call(
        sw.OPB,
        {
            **PULLED,
            "mean_cost_bound": 1.0,
            "optimism": "inflated",
            "reward_confidence_scale": 1.0,
            "cost_confidence_scale": 1.0,
            "split_delta": True,
        },
    ),
    "OPLB": Call(sw.OPLB, {**OPTIMISTIC, "method": "lp"}),
    "OPNLB": Call(
        sw.OPNLB,
        {
            "reward_class": [[0.2, 0.5], [0.2, 0.9]],
            "cost_class": [[0.1, 0.2], [0.1, 0.6]],
            "safe_action": SAFE_ARM,
            "threshold": 0.5,
            "noise": 0.5,
            "delta": 0.05,
            "method": "pointwise",
            "optimism": "inflated",
            "reward_confidence_scale": 1.0,
        },
    ),
    "PolytopeSet": Call(sw.PolytopeSet, {"vertices": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]}),
    "PolytopeSet of half-spaces": Call(
        sw.PolytopeSet, {"A": [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], "b": [1.0, 1.0, 1.0, 1.0]}
    ),
    "RBF": Call(sw.RBF, {"lengthscale": 0.5}),
    "ROFUL": Call(sw.ROFUL, FEATURED),
    "RandomFiniteSet": Call(sw.RandomFiniteSet, {"count": 2, "dimension": 2}),
    "RandomRaySet": Call(sw.RandomRaySet, {"count": 2, "dimension": 2}),
    "RaySet": Call(sw.RaySet, {"targets": EYE}),
    "TimesSafe": Call(sw.TimesSafe, {"factor": 1.5}),
    "SafeAction": Call(sw.SafeAction, {"features": [0.5, 0.5], "arm": None, "reward": 0.2, "cost": 0.1}),
    "SafeAction of an arm": Call(sw.SafeAction, {"arm": 0, "reward": 0.2, "cost": [0.1]}),
    "SafeLTS": Call(sw.SafeLTS, {**FEATURED, "inflation": "theory"}),
    "LinearWorldFamily": Call(sw.LinearWorldFamily, {"world": LINEAR, "seed": 0}),
    "FiniteSetWorld": Call(
        sw.FiniteSetWorld,
        {"features": EYE, "reward": [0.1, 0.7], "cost": [0.0, 0.2], "noise": 0.1, "outcomes": "gaussian"},
    ),
    "SafeContextPosteriorSampling": Call(
        sw.SafeContextPosteriorSampling,
        {
            "actions": 3,
            "context": 1,
            "segments": 1,
            "by": {"cost": 0},
            "score_buckets": {"cost": [4, 1, 1]},
            "reward_model": "linear",
            "cost_model": "rates",
            "norm_bound": 1.0,
            "ridge": 1.0,
            "slope_scale": 0.7,
            "drift": None,
            "initial_actions": 2,
            "posterior_scale": 0.7,
            "max_regret_ratio": 5.0,
            "mean_reward_bound": 1.0,
            "safe_action": SAFE_ARM,
            "threshold": 0.5,
            "delta": 0.05,
            "mean_cost_bound": 1.0,
            "check_assumptions": True,
        },
    ),
    "ContextVector": Call(sw.ContextVector, {"features": [0.1], "segments": [1], "allowed": None}),
    "Reward": Call(
        sw.Reward,
        {
            "name": "click",
            "low": 0.0,
            "high": 1.0,
            "safe_bound": 0.0,
            "model": "rates",
            "window": "7d",
            "missing": 0.0,
            "by": "x",
        },
    ),
    "Limit": Call(
        sw.Limit,
        {
            "value": 0.1,
            "low": 0.0,
            "high": 1.0,
            "safe_bound": 0.0,
            "model": "rates",
            "window": "7d",
            "missing": 0.0,
            "by": "x",
        },
    ),
    "RiskScore": Call(
        sw.RiskScore,
        {"name": "risk", "buckets": 3, "cuts": [0.2, 0.5], "low": 0.0, "high": 1.0, "monotone": True, "version": 1},
    ),
    "Number": Call(sw.Number, {"low": 0.0, "high": 9.0, "clip": True, "missing": 1.0}),
    "Boolean": Call(sw.Boolean, {"missing": False}),
    "Date": Call(sw.Date, {"low": "2024-01-01", "high": "2026-12-31", "clip": True, "missing": "2025-01-01"}),
    "Category": Call(sw.Category, {"levels": ["free", "pro"], "other": True, "missing": "other"}),
    "Problem": Call(
        sw.Problem,
        {
            "action_names": ["a", "b"],
            "safe_name": "a",
            "reward": sw.Reward("click"),
            "limits": {"x": sw.Limit(0.1, model="rates")},
            "context": {"age": (0.0, 1.0)},
            "delta": 0.05,
            "settings": {"posterior_scale": 0.5},
        },
    ),
    "ContextWorld": Call(
        sw.ContextWorld,
        {"reward": EYE, "cost": [EYE], "noise": 0.1, "outcomes": "gaussian", "safe": 0, "features": "plain"}
        | {"segments": [0.5, 0.5], "segment_offsets": [[[0.0, 0.1], [0.0, 0.1]]] * 2},
    ),
    "UserTableWorld": Call(
        sw.UserTableWorld,
        {"users": EYE, "reward": EYE, "cost": EYE, "noise": 0.1, "safe": 0, "segment_columns": 0},
    ),
    "Move": Call(
        sw.Move,
        {"kind": "path", "signal": "reward", "action": 1, "amount": 0.1, "start": "1d", "length": "2d"}
        | {"values": [0.0, 0.1]},
    ),
    "MovingWorld": Call(
        sw.MovingWorld,
        {
            "world": sw.ContextWorld(reward=[[0.1], [0.2]], cost=[[0.1], [0.2]], features="plain"),
            "moves": [sw.Move(kind="jump", signal="reward", action=1, amount=0.1, start="1d")],
            "per_day": 10.0,
            "lag": "2d",
            "start": 0.0,
        },
    ),
    "FiniteSet that names its safe action": Call(
        sw.FiniteSet, {"features": EYE, "safe": 0, "safe_cost": [0.1], "safe_reward": 0.1}
    ),
    "UCB": Call(sw.UCB, {**PULLED, "safe_action": SAFE_ARM, "threshold": 0.5}),
    "Agent": Call(
        sw.Agent, {"policy": PULLS, "seed": 0, "learning_order": "decision", "name": "a", "windows": WINDOWS}
    ),
    "Agent with a clock": Call(sw.Agent, {"policy": PULLS, "clock": float}),
    "Replica": Call(sw.Replica, {"snapshot": SNAPSHOT, "name": "pod-3", "round": 0}),
    "decide_frame": Call(
        sw.decide_frame,
        {
            "snapshot": sw.Agent(LOGGED).replica_snapshot(),
            "users": {"user_id": [1, 2], "age": [0.5, 0.1]},
            "id": "user_id",
            "run": "night",
        },
    ),
    "OutcomeWindow": Call(sw.OutcomeWindow, {"duration": "7d", "missing": 0.0}),
    "check_log": Call(
        sw.check_log, {"log": LOG, "problem": LOGGED, "columns": {}, "alpha": 0.01, "ignore_checks": ["drift"]}
    ),
    "check_log that proposes": Call(
        sw.check_log,
        {"log": LOG, "action": "action", "reward": "click", "limits": {"opt_out": 0.2}, "safe": "no"}
        | {"proposal_fraction": 0.5, "delta": 0.05, "columns": {}, "alpha": 0.01, "ignore_checks": []},
    ),
    "fit_risk_score": Call(
        sw.fit_risk_score,
        {"log": {**LOG, "opt_out": [0, 0, 1, 1] * 30}, "problem": LOGGED, "limit": "opt_out", "columns": {}}
        | {"name": "risk", "buckets": 3, "fraction": 0.5},
    ),
}

QUESTIONS: dict[str, Call] = {  # asked of objects that no question changes
    "Arms.only": Call(sw.ArmSet(3).only, {"chosen": [0, 2]}),
    "Rays.only": Call(sw.RaySet(EYE).only, {"chosen": [True, False]}),
    "FiniteSet.only": Call(sw.FiniteSet(EYE).only, {"chosen": [0]}),
    "ArmsWorld.means": Call(ARMS.means, {"action": 1}),
    "ArmsWorld.outcome": Call(ARMS.outcome, {"action": 1, "draw": sw.RandomKey()}),
    "LinearWorld.means": Call(LINEAR.means, {"action": [0.5, 0.5]}),
    "LinearWorld.outcome": Call(LINEAR.outcome, {"action": [0.5, 0.5], "draw": sw.RandomKey()}),
    "ContextWorld.action_means": Call(
        sw.ContextWorld(reward=EYE, cost=EYE, outcomes="gaussian", features="plain").action_means,
        {"index": 1, "features": [1.0, 1.0, 0.5]},
    ),
    "FiniteSetWorld.means": Call(TABLE.means, {"action": [1.0, 0.0]}),
    "FiniteSetWorld.outcome": Call(TABLE.outcome, {"action": [1.0, 0.0], "draw": sw.RandomKey()}),
    "MovingWorld.means_on": Call(
        sw.MovingWorld(
            sw.ContextWorld(reward=[[0.1], [0.2]], cost=[[0.1], [0.2]], features="plain"), per_day=10.0
        ).means_on,
        {"day": 1.0},
    ),
    "RandomRaySet.draw": Call(sw.RandomRaySet(2, 2).draw, {"draw": sw.RandomKey()}),
    "LinearWorldFamily()": Call(sw.LinearWorldFamily(LINEAR), {"run": 1}),
    "ArmsWorldFamily()": Call(sw.ArmsWorldFamily(ARMS), {"run": 1}),
    "Ball.contains": Call(sw.BallSet(1.0, [0.0, 0.0]).contains, {"point": [0.5, 0.5]}),
    "Box.contains": Call(sw.BoxSet([0.0, 0.0], [1.0, 1.0]).contains, {"point": [0.5, 0.5]}),
    "Snapshot.from_dict": Call(sw.Snapshot.from_dict, {"content": SNAPSHOT.to_dict()}),
    "Snapshot.from_bytes": Call(sw.Snapshot.from_bytes, {"content": bytes(SNAPSHOT)}),
    "Replica.update": Call(sw.Replica(SNAPSHOT, "pod-3").update, {"snapshot": SNAPSHOT}),
    "FiniteFunctionClass.evaluate": Call(sw.FiniteFunctionClass([twice]).evaluate, {"features": np.eye(2)}),
}

SIMULATIONS: dict[str, Call] = {
    "simulate": Call(
        sw.simulate,
        {"policy": PULLS, "world": ARMS, "runs": 1, "record_points": 2, "audit": False, **PLAYED},
        patient=("rounds", "runs"),
    ),
    "simulate on rays": Call(
        sw.simulate,
        {"policy": RAYS, "world": LINEAR, "runs": [0, 3], "record_points": 2, "audit": False, **PLAYED},
        patient=("rounds", "runs"),
    ),
    "certify": Call(
        sw.certify,
        {"policy": PULLS, "world": ARMS, "runs": 2, "delta": 0.05, "confidence": 0.9, "stop_early": True, **PLAYED},
        patient=("rounds", "runs"),
    ),
}

ROWS = {"action": ["nothing", "offer"] * 8, "age": [30.0, 40.0] * 8, "click": [0, 1] * 8, "opt_out": [0, 0] * 8}
LAUNCHED = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={"age": (18, 99)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, safe_bound=0.0, model="rates")},
)
SIMULATIONS |= {
    "evaluate_on_log": Call(
        sw.evaluate_on_log,
        {
            "log": ROWS,
            "problem": LAUNCHED,
            "candidate": "offer",
            "columns": {"click": "click"},
            "propensity": 0.5,
            "estimators": ("ips",),
            "primary_estimator": "ips",
            "delta": 0.05,
            "weight_bound": 4.0,
            "as_of": None,
        },
    ),
    "forecast_from_log": Call(
        sw.forecast_from_log,
        {
            "log": ROWS,
            "problem": LAUNCHED,
            "limits": {"opt_out": [0.2]},
            "days": 1,
            "users_per_day": 1.0,
            "runs": 38,
            "seed": 0,
            "warm_start": "all",
            "columns": {"click": "click"},
            "as_of": None,
            "executor": None,
            "progress": False,
        },
        patient=("days", "users_per_day", "runs"),
    ),
}

RECORDS = {
    "RowStatus",
    "ReasonDetails",
    "FallbackReason",
    "TripReason",
    "Decision",
    "RiskScoreFit",
    "RandomKey",
    "Outcome",
    "Snapshot",
    "PolicyState",
    "SimulationCertificate",
    "Result",
}  # they hold what they are given
PROTOCOLS = {"Policy", "World"}
ERRORS = {"ErrorCode", "InvalidActions", "InvalidFile", "InvalidOutcome", "InvalidProblem", "StagewiseError"}
FILES = {"verify_certificate"}  # and the verbs save and load, in test_files.py
