"""A known log and a desk that shows it: no learner, no store, so that every figure can be reckoned."""

from typing import Any, NamedTuple

import numpy as np
from tests.server.rows import Log

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.server.figures import build_figures
from stagewise.server.log_statistics import LogStatistics
from stagewise.server.messages import UnknownDecision, UnknownExperiment
from stagewise.server.store.base import StoreUnavailable

ACTIONS = ("nothing", "digest", "offer", "reminder")
PROBLEM = sw.Problem(
    action_names=ACTIONS,
    safe_name="nothing",
    context={"age": (18, 99), "opens_7d": (0, 7)},
    reward=sw.Reward("click", window="10s"),
    limits={
        "opt_out": sw.Limit(0.02, safe_bound=0.0, window="20s", model="rates"),
        "complaint": sw.Limit(0.005, safe_bound=0.0, window="20s", by="country"),
    },
)
HEALTH = [
    {"name": "safe opt_out", "verdict": "fine", "message": "declared 0, and nothing else was seen in 4,120 decisions"},
    {"name": "drift of click", "verdict": "unknown", "message": "too little was seen to tell"},
    {"name": "range of context", "verdict": "fine", "message": "every number lies in its declared range"},
]


def campaign(decisions: int = 4000, problem: sw.Problem = PROBLEM, start: float = 1.8e9, step: float = 0.1) -> Log:
    """Return the log of a campaign that gets bolder as it learns."""
    rng, log = np.random.default_rng(7), Log(problem, start)
    log.control(start, "mode", "ada", "first day, a tenth of the users", mode="canary", share=0.1)
    names = list(problem.action_names)
    each = ((0.02, 0.0, 0.0), (0.08, 0.006, 0.001), (0.16, 0.018, 0.003), (0.05, 0.03, 0.004))
    rates = dict(zip(names, each, strict=True))
    due: list[tuple[float, str, dict[str, float]]] = []
    for i in range(decisions):
        at, bold = start + step * i, i / decisions
        if i == decisions // 5:
            log.control(at, "mode", "grace", "no complaints so far", mode="live", share=1.0)
        while due and due[0][0] <= at:
            when, key, values = due.pop(0)
            log.outcome(when, key, **values)
        weights = np.array(
            [max(0.97 - 1.1 * bold, 0.12), 0.02 + 0.45 * min(bold, 0.4), 0.005 + 0.8 * max(bold - 0.3, 0.0), 0.005]
        )
        weights /= weights.sum()
        name = str(rng.choice(names, p=weights))
        dearest = {"opt_out": min(0.02, 0.02 - 0.018 * max(0.3 - bold, 0.0)), "complaint": 0.005 - 0.002 * (1 - bold)}
        limits = {
            k: {"estimate": None, "pessimistic_cost": v, "threshold": problem.limits[k].value}
            for k, v in zip(problem.limits, dearest.values(), strict=True)
        }
        body: dict[str, Any] = {"probabilities": dict(zip(names, weights.tolist(), strict=True)), "limits": limits}
        if i < decisions * 0.2 and rng.random() < 0.9:
            name = names[0]
            body.update(reason="outside_canary", mode="canary", details={"share": 0.1})
        elif name == names[0] and rng.random() < 0.04:
            body.update(reason="no_better_action")
        log.decision(at, f"u-{i:05}", name, **body)
        click, out, complaint = (float(rng.random() < rate) for rate in rates[name])
        if rng.random() < 0.9:
            due.append((at + float(rng.exponential(2.0)), f"u-{i:05}", {problem.reward.name: click}))
        signals = list(problem.limits)
        if out or complaint:
            due.append((at + float(rng.exponential(5.0)), f"u-{i:05}", {signals[0]: out, signals[1]: complaint}))
        due.sort()
    return log


class Holder(NamedTuple):
    """Who holds a key."""

    name: str
    role: str

    def has_role(self, role: str) -> bool:
        roles = ("reader", "writer", "admin")
        return roles.index(self.role) >= roles.index(role)


class FakeKeys:
    """Two keys."""

    def __init__(self) -> None:
        self.rows = {"ada": Holder("ada", "admin"), "eve": Holder("eve", "reader")}

    def holder(self, key: str) -> Holder | None:
        return self.rows.get(key.removeprefix("sw_").removesuffix("_secret")) if key.endswith("_secret") else None

    def get_holder(self, name: str) -> Holder | None:
        return self.rows.get(name)


class Shown(NamedTuple):
    """An experiment of the fake desk."""

    problem: sw.Problem


class KnownDesk:
    """A desk that shows logs as they are; changes are written to them."""

    def __init__(self, logs: dict[str, Log], problem: sw.Problem = PROBLEM, **told: Any) -> None:
        self.logs, self.problem = logs, problem
        self.tallies = {name: LogStatistics(name) for name in logs}
        self.told: dict[str, Any] = {
            "mode": "live",
            "killed": None,
            "snapshot_age_s": 0.0,
            "alerts": [],
            "health": HEALTH,
            **told,
        }
        self.down: str | None = None
        self.changes: list[tuple[Any, ...]] = []

    def experiments(self) -> list[str]:
        return sorted(self.logs)

    def experiment(self, name: str) -> Shown:
        if name not in self.logs:
            raise UnknownExperiment(ErrorCode.UNKNOWN_EXPERIMENT, "there is no experiment {name!r}", name=name)
        return Shown(self.problem)

    def figures(self, name: str) -> dict[str, Any]:
        self.experiment(name)
        if self.down is not None:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem=self.down)
        tally, log = self.tallies[name], self.logs[name]
        with tally.lock:
            for event in log.events[tally.seq :]:
                tally.take(event)
        tally.head = tally.seq
        now = log.events[-1].at if log.events else 0
        return build_figures(tally, now, **self.told)

    def ready(self) -> tuple[bool, str]:
        return (True, "ready") if self.down is None else (False, self.down)

    def explain(self, name: str, id_: str) -> dict[str, Any]:
        found = next((one for one in self.figures(name)["last"] if one["decision_id"] == id_), None)
        if found is None:
            raise UnknownDecision(ErrorCode.UNKNOWN_DECISION, "there is no decision {id!r}", id=id_)
        return {**found, "outcome": {}, "description": [f"{found['action']!r} was served."]}

    async def kill(self, name: str | None, actor: str, reason: str) -> None:
        self.changes.append(("kill", name, actor, reason))
        self.told["killed"] = f"killed by {actor}: {reason}"

    async def resume(self, name: str | None, actor: str, reason: str) -> None:
        self.changes.append(("resume", name, actor, reason))
        self.told["killed"] = None

    async def set_mode(self, name: str, mode: str, share: float | None, actor: str, reason: str) -> None:
        self.changes.append(("mode", name, mode, share, actor, reason))
        self.told["mode"] = mode

    async def acknowledge(self, name: str, doubt: str, actor: str, reason: str) -> None:
        self.changes.append(("acknowledge", name, doubt, actor, reason))
        self.told["alerts"] = [one for one in self.told["alerts"] if one["name"] != doubt]
