"""A desk and a store in memory, of the real ones' shape, for what only the HTTP side is tested by."""

import time
from collections import Counter
from functools import cache
from types import SimpleNamespace
from typing import Any

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import SHOWN, Event, KeyRow, encode_canonical
from stagewise.server.messages import (
    Conflict,
    DecisionRequest,
    DecisionResponse,
    ErrorResponse,
    LimitStatus,
    ModeResponse,
    OutcomeResponse,
    OutcomeUpdate,
    UnknownDecision,
    UnknownExperiment,
)
from stagewise.server.offline_log import OfflineLogRequest, OfflineLogResponse
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.versions import build_first_version


@cache
def problem() -> sw.Problem:
    """Return the problem of the tests."""
    return sw.Problem(
        actions=["nothing", "digest", "offer"],
        safe="nothing",
        context={"age": (18, 99)},
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.02, safe=0.0, window="7d")},
    )


class FakeStore:
    """Keys and rows in memory; `down`: nothing of it can be reached."""

    def __init__(self) -> None:
        self.rows: dict[str, KeyRow] = {}
        self.log: list[Event] = []
        self.secrets: dict[str, bytes] = {}
        self.down = False

    def _reached(self) -> None:
        if self.down:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the store cannot be reached")

    def keys(self) -> list[KeyRow]:
        self._reached()
        return list(self.rows.values())

    def add_key(self, key: KeyRow) -> bool:
        self._reached()
        return self.rows.setdefault(key.name, key) is key

    def revoke_key(self, name: str, at: int) -> bool:
        self._reached()
        self.rows[name] = self.rows[name]._replace(revoked=at)
        return True

    def secret(self, name: str, fresh: bytes) -> bytes:
        return self.secrets.setdefault(name, fresh)

    def now(self) -> int:
        return time.time_ns() // 1000

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        self._reached()
        return [event for event in self.log if event.seq > after][:limit]

    def write(self, kind: Any, key: str, body: Any) -> int:
        self._reached()
        seq = len(self.log) + 1
        self.log.append(Event(seq, self.now(), kind, key, -1, encode_canonical(body), bytes(32)))
        return seq


class FakeDesk:
    """Decides for the safe action, and remembers."""

    def __init__(self, store: FakeStore, names: tuple[str, ...] = ("demo",)) -> None:
        self.store, self.running = store, False
        self.counters = SimpleNamespace(decisions=Counter(), outcomes=Counter(), refused=Counter())
        self.everywhere = SimpleNamespace(killed=None)
        self.learner = SimpleNamespace(failures={})
        self.made: dict[str, tuple[bytes, DecisionResponse]] = {}
        self.told: dict[str, dict[str, float]] = {}
        self.changes: list[tuple[Any, ...]] = []
        self._experiments = {
            name: SimpleNamespace(
                name=name, problem=problem(), version=1, mode="live", share=1.0, killed=None, snapshot=0,
                snapshot_time=time.monotonic(), alerts={}, current=build_first_version(problem()),
            )
            for name in names
        }  # fmt: skip

    async def start(self) -> None:
        self.running = True

    async def stop(self) -> None:
        self.running = False

    def experiments(self) -> list[str]:
        return sorted(self._experiments)

    def experiment(self, name: str) -> Any:
        if name not in self._experiments:
            raise UnknownExperiment(ErrorCode.UNKNOWN_EXPERIMENT, "there is no experiment {name!r}", name=name)
        return self._experiments[name]

    async def decide(self, name: str, asked: DecisionRequest) -> DecisionResponse:
        found = self.experiment(name)
        found.problem.encode_context(asked.context, asked.only)
        sent, known = encode_canonical(asked), self.made.get(asked.decision_id or "")
        if known is not None:
            if known[0] != sent:
                raise Conflict(ErrorCode.CONFLICT, "the id {id!r} was used for another decision", id=asked.decision_id)
            return known[1]
        own = asked.decision_id or f"d{len(self.made)}"
        limits = {"opt_out": LimitStatus(0.0, 0.0, 0.02)}
        decided = DecisionResponse(own, "nothing", {"nothing": 1.0}, found.mode, 1, 0, limits)
        if asked.dry_run:
            decided.logged = False
            return decided
        try:
            self.store.write("decision", own, {"sent": sent.hex()})
        except StoreUnavailable as error:
            decided.logged, decided.message = False, str(error)
            return decided
        self.made[own] = (sent, decided)
        self.counters.decisions[(name, decided.action, decided.mode, "")] += 1
        return decided

    async def decide_many(self, name: str, asked: list[DecisionRequest]) -> list[DecisionResponse | ErrorResponse]:
        self.experiment(name)
        return [await self._item(self.decide(name, one), one.decision_id) for one in asked]

    async def learn(self, name: str, outcome: OutcomeUpdate) -> OutcomeResponse:
        found, known = self.experiment(name), outcome.decision_id
        if known not in self.made:
            raise UnknownDecision(ErrorCode.UNKNOWN_DECISION, "there is no decision {id!r}", id=known)
        for signal, value in outcome.values.items():
            if signal != SHOWN:
                if signal not in found.problem.signals:
                    raise sw.InvalidOutcome(ErrorCode.UNKNOWN_SIGNAL, "{signal!r} is not a signal", signal=signal)
                if not 0.0 <= value <= 1.0:
                    raise sw.InvalidOutcome(
                        ErrorCode.OUTCOME_OUT_OF_RANGE,
                        "{signal} is {value:g}, outside [0, 1]",
                        signal=signal,
                        value=value,
                    )
            if self.told.get(known, {}).get(signal, value) != value:
                raise Conflict(ErrorCode.CONFLICT, "{signal!r} of {id!r} has another value", signal=signal, id=known)
        new = {s: v for s, v in outcome.values.items() if s not in self.told.get(known, {})}
        self.store.write("outcome", outcome.outcome_id or "", outcome.values)
        self.told.setdefault(known, {}).update(new)
        return OutcomeResponse(known, list(new), [s for s in outcome.values if s not in new])

    async def learn_many(self, name: str, outcomes: list[OutcomeUpdate]) -> list[OutcomeResponse | ErrorResponse]:
        self.experiment(name)
        return [await self._item(self.learn(name, one), one.decision_id) for one in outcomes]

    async def _item(self, asked: Any, known: str | None) -> Any:
        try:
            return await asked
        except StoreUnavailable:
            raise
        except sw.StagewiseError as error:
            return ErrorResponse(error.code, str(error), known)

    async def set_mode(self, name: str, mode: str, share: float | None, actor: str, reason: str) -> ModeResponse:
        found = self.experiment(name)
        found.mode, found.share = mode, 1.0 if share is None else share
        return self._changed(("mode", name, mode, share, actor, reason))

    async def kill(self, name: str | None, actor: str, reason: str) -> ModeResponse:
        for one in self.experiments() if name is None else [name]:
            self.experiment(one).killed = reason
        return self._changed(("kill", name, actor, reason))

    async def resume(self, name: str | None, actor: str, reason: str) -> ModeResponse:
        for one in self.experiments() if name is None else [name]:
            self.experiment(one).killed = None
        return self._changed(("resume", name, actor, reason))

    async def acknowledge(self, name: str, doubt: str, actor: str, reason: str) -> ModeResponse:
        self.experiment(name)
        return self._changed(("acknowledge", name, doubt, actor, reason))

    async def new_version(self, name: str, plain: dict[str, Any], actor: str, reason: str) -> int:
        found = self.experiment(name)
        found.problem = sw.Problem.from_dict(plain)
        found.version += 1
        self._changed(("problem", name, actor, reason))
        return int(found.version)

    async def learn_columns(self, name: str, asked: OfflineLogRequest, actor: str) -> OfflineLogResponse:
        self.experiment(name)
        changed = self._changed(("log", name, actor, asked.reason))
        return OfflineLogResponse(0, "", changed.control, True, [])

    def _changed(self, change: tuple[Any, ...]) -> ModeResponse:
        row = self.store.write("control", "", list(change))
        self.changes.append(change)
        return ModeResponse("live", 1.0, change[0] == "kill", row)

    def explain(self, name: str, decision_id: str) -> dict[str, Any]:
        self.experiment(name)
        if decision_id not in self.made:
            raise UnknownDecision(ErrorCode.UNKNOWN_DECISION, "there is no decision {id!r}", id=decision_id)
        return {"decision_id": decision_id, "duplicate": self.told.get(decision_id, {})}

    def figures(self, name: str) -> dict[str, Any]:
        found = self.experiment(name)
        return {
            "killed_everywhere": False, "now": 1.8e9, "delta": 0.05, "actions": [], "bucket_s": 1.0,
            "name": name, "mode": found.mode, "share": found.share, "killed": found.killed, "version": found.version,
            "problem": found.problem.to_dict(), "decisions": len(self.made), "pending_count": 0, "buffered_count": 0,
            "lag_s": {"click": 1.5, "opt_out": None}, "snapshot_age_s": 0.1, "max_age_s": 60.0, "failed": None,
            "reward": {"name": "click", "safe": {}, "now": {}},
            "limits": {"opt_out": {
                "threshold": 0.02, "at_most": True, "pessimistic_cost": 0.005, "observed_mean": 0.01, "low": 0.0,
                "high": 0.02, "shadow": None, "safe_cost_unknown": False,
            }},
            "series": [], "reasons": {}, "stops": [], "controls": [], "alerts": [], "last": [], "health": [],
            "pending": [], "shadow": {}, "lag_rows": 0, "offline_log_rows": 0,
        }  # fmt: skip

    def ready(self) -> tuple[bool, str]:
        return (False, "the store cannot be reached") if self.store.down else (True, "")
