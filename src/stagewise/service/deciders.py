"""Decisions of a desk: made by what is known, written, and only then answered."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidActions
from stagewise.records.reason import Cause, Reason
from stagewise.service.answers import answer, told_of
from stagewise.service.controls import Controls
from stagewise.service.deciding import Known, Row, decided, decided_all, dry_key, encoded, safely
from stagewise.service.errors import Conflict
from stagewise.service.experiment import Experiment
from stagewise.service.ids import fresh_id
from stagewise.service.messages import Asked, Decided, Refusal
from stagewise.service.reading import Reading
from stagewise.service.records import CONFLICT, DECISION, SAME, STALE, Ask, Settled, canonical, digest
from stagewise.service.store.store import StoreDown

TRIES = 8  # of a decision while controls change under it


class Made(NamedTuple):
    """A decision that is not in the log yet."""

    desk: "Deciders"
    ours: Experiment
    reason: str
    """Why the safe action is served; empty: for none."""
    told: Decided
    """The answer, once it is."""
    ask: Ask


class Deciders(Reading):
    """Decide for users."""

    async def decide(self, name: str, asked: Asked) -> Decided:
        """Decide for a user. The answer is in the log, or says that it is not."""
        ours, id_ = self.experiment(name), asked.decision_id or fresh_id()
        if asked.dry_run:
            return answer(id_, decided(*self.basis(ours), dry_key(ours.key), id_, asked), logged=False)
        why = "the controls changed again and again while it was made"
        for _ in range(TRIES):
            try:
                made = self.make(ours, asked, id_)
            except InvalidActions:
                before = await self._before(ours, asked)
                if before is None:
                    raise
                return before
            try:
                settled = await self.writer.append(made.ask)
                if settled.verdict != STALE:
                    return self._answered(made, settled)
                await asyncio.to_thread(self.refresh)
            except StoreDown as error:
                why = str(error)
                break
        return self.unlogged(made, why)

    def basis(self, ours: Experiment) -> tuple[Known, Controls, Controls]:
        """Return what decides now. Another thread may read a new version meanwhile, which sets what is known first.

        So what is known is taken last: it is never of an older version than the controls, and where it is of a newer
        one the store refuses the row as decided by old controls.
        """
        controls, everywhere = ours.controls, self.everywhere
        return ours.known, controls, everywhere

    def make(self, ours: Experiment, asked: Asked, id_: str | None = None) -> Made:
        """Decide by what is known now; nothing is in the log by this. Raises InvalidActions."""
        id_ = id_ or asked.decision_id or fresh_id()
        body = decided(*self.basis(ours), ours.key, id_, asked)
        first, second = body["control"]
        ask = Ask(ours.name, DECISION, id_, canonical(body), sent(asked), (first, second))
        return Made(self, ours, body["reason"] or "", answer(id_, body), ask)

    def make_all(self, ours: Experiment, asked: Sequence[tuple[str, Asked]]) -> list[Made | None]:
        """Do the same for several ids at once; None: that one is not as simple, and is asked for by itself."""
        rows = decided_all(*self.basis(ours), ours.key, asked)
        pairs = zip(asked, rows, strict=True)
        return [None if row is None else self._made(ours, id_, one, row) for (id_, one), row in pairs]

    def _made(self, ours: Experiment, id_: str, asked: Asked, row: Row) -> Made:
        told = Decided(
            id_, row.action, row.probabilities, row.mode, row.problem, row.state, row.limits, row.reason,
            None if row.reason is None else Cause(Reason(row.reason), row.details).sentence, row.estimated_reward,
        )  # fmt: skip
        ask = Ask(ours.name, DECISION, id_, encoded(row), sent(asked), row.control)
        return Made(self, ours, row.reason or "", told, ask)

    async def _before(self, ours: Experiment, asked: Asked) -> Decided | None:
        """Return what was answered once to what is refused now, as where an action was retired since; None: nothing."""
        if asked.decision_id is None:
            return None
        with suppress(StoreDown):
            ask = Ask(ours.name, DECISION, asked.decision_id, b"", sent(asked), (0, 0))  # it is never written
            settled = await self.writer.append(ask)
            if settled.verdict == SAME and settled.event is not None:
                return answer(asked.decision_id, msgspec.json.decode(settled.event.body))
        return None

    async def decide_all(self, name: str, asked: Sequence[Asked]) -> list[Decided | Refusal]:
        """Decide for several users, each by itself; what is refused is answered in its place."""
        self.experiment(name)
        made = await asyncio.gather(*(self.decide(name, one) for one in asked), return_exceptions=True)
        return [told_of(one, asked[i].decision_id) for i, one in enumerate(made)]

    def _answered(self, made: Made, settled: Settled) -> Decided:
        """Return the answer to a decision that is in the log, now or since an earlier try."""
        if settled.verdict == CONFLICT:
            id_ = made.told.decision_id
            raise Conflict(settled.words or f"decision {shown(id_)} was asked before with other content")
        if settled.verdict == SAME and settled.event is not None:
            return answer(made.told.decision_id, msgspec.json.decode(settled.event.body))
        self.learner.wake()
        return self.written(made)

    def written(self, made: Made) -> Decided:
        """Return the answer to a decision that was just written."""
        told = made.told
        self.counts.decisions[made.ours.name, told.action, told.mode, made.reason] += 1
        return told

    def unlogged(self, made: Made, why: str) -> Decided:
        """Return the safe action, loudly: nothing of it is in the log."""
        told = made.told
        safe = safely(made.ours.known, Cause.of(Reason.NOT_LOGGED, error=why))
        body = {**safe, "mode": told.mode, "problem": told.version, "state": told.state}
        self.counts.decisions[made.ours.name, body["action"], told.mode, Reason.NOT_LOGGED] += 1
        return answer(told.decision_id, body, logged=False)


def sent(asked: Asked) -> bytes:
    """Return the digest of what a client asked under an id of its own; empty: it gave none."""
    return digest(canonical([asked.context, asked.only, asked.deferred])) if asked.decision_id is not None else b""
