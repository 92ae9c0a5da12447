"""The desk: what a request meets. It decides on what is known, has the log written, and only then answers.

It learns nothing itself: the learner does, from the log. So a desk has no state of its own, and any number of them may
stand before one store.
"""

import asyncio
import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from stagewise.policies.agent.health import health_of
from stagewise.policies.problem import Problem
from stagewise.problem.checks import shown
from stagewise.problem.declared import title
from stagewise.problem.errors import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.words import nearest
from stagewise.service.answers import answer, in_words, told_of
from stagewise.service.controls import ACKNOWLEDGE, KILL, MODE, REVIVE, Controls, folded, mode_of
from stagewise.service.deciding import UNLOGGED, Known, decided, decided_all, dry_key, safely
from stagewise.service.errors import Conflict, UnknownDecision, UnknownExperiment
from stagewise.service.experiment import Counts, Experiment
from stagewise.service.figures import figures_of
from stagewise.service.fold import Fold
from stagewise.service.ids import fresh_id
from stagewise.service.learner import Learner
from stagewise.service.messages import OUTCOME_WORDS, RESERVED, Asked, Changed, Decided, Outcome, Refusal, Told
from stagewise.service.records import (
    CONFLICT,
    CONTROL,
    DECISION,
    EVERYWHERE,
    OUTCOME,
    PROBLEM,
    SAME,
    STALE,
    UNKNOWN,
    Ask,
    Event,
    Kind,
    Settled,
    canonical,
)
from stagewise.service.store.store import Store, StoreDown
from stagewise.service.tally import Tally
from stagewise.service.told import late_in, values_of
from stagewise.service.versions import Version, first, following
from stagewise.service.writer import Writer

log = logging.getLogger("stagewise.desk")

TRIES = 8  # of a decision while controls change under it
REFRESH = 0.2  # seconds between two looks at what other processes changed


class Made(NamedTuple):
    """A decision that is not in the log yet."""

    desk: "Desk"
    ours: Experiment
    id_: str
    body: dict[str, Any]
    ask: Ask


class Desk:
    """Decide, take outcomes, change controls: each durable before it is answered."""

    def __init__(
        self,
        store: Store,
        *,
        learn: bool = True,
        alone: bool = True,
        max_age: float = 60.0,
        dry_after: float | None = None,
    ) -> None:
        self.store, self.max_age = store, max_age
        self.counts = Counts()
        self.everywhere = Controls()
        self.writer = Writer(store)
        self._experiments: dict[str, Experiment] = {}
        self._tallies: dict[str, Tally] = {}
        self._refreshed = 0.0
        self._reading = threading.RLock()  # the learner's thread reads what is new, and so does whoever changes it
        self._learn = learn
        self.learner = Learner(
            store, self._versions, self._publish, self.writer.append_now, alone=alone, dry_after=dry_after
        )

    async def start(self) -> None:
        """Read what there is, and begin to learn."""
        self.writer.start()
        self.refresh()
        if self._learn:
            self.learner.start()

    async def stop(self) -> None:
        """Answer what was asked, keep a snapshot, let go of the store."""
        await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)
        self.store.close()

    # What is served.

    def experiments(self) -> list[str]:
        """Return the names of all experiments."""
        return sorted(self._experiments)

    def experiment(self, name: str) -> Experiment:
        """Return an experiment, or say that there is none of this name."""
        found = self._experiments.get(name)
        if found is None:
            known = self.experiments()
            raise UnknownExperiment(f"{shown(name)} is no experiment of this desk{nearest(name, known)}")
        return found

    def refresh(self) -> None:
        """Read versions and controls that other processes have written."""
        with self._reading:
            self._refreshed = time.monotonic()
            head, ours = self.store.head(EVERYWHERE), self.everywhere
            if head.control > ours.row:
                self.everywhere = folded(self._rows(EVERYWHERE, CONTROL, ours.row, head.control), ours)
            for name in self.store.experiments():
                self._read(name)

    def _rows(self, name: str, kind: Kind, after: int, last: int) -> Iterator[Event]:
        """Give the rows of one kind between two, however many: what is written meanwhile is for the next look."""
        while portion := self.store.of_kind(name, kind, after):
            yield from (event for event in portion if event.seq <= last)
            after = portion[-1].seq

    def _read(self, name: str) -> None:
        """Read what was written of one experiment's versions and controls, up to where its log ended just now."""
        ours, head = self._experiments.get(name), self.store.head(name)
        last = head.control
        if ours is not None and last <= ours.controls.row:
            return
        after = 0 if ours is None else ours.controls.row
        problems = list(self._rows(name, PROBLEM, after, last))
        version = None if ours is None else ours.current
        for event in problems:
            wanted = Problem.from_plain(msgspec.json.decode(event.body)["problem"])
            version = first(wanted) if version is None else following(version, wanted)
        if version is None:
            return
        if ours is None:
            key = self.store.secret(f"draws of {name}", secrets.token_bytes(32))
            ours = self._experiments[name] = Experiment(name, version, key, head.places)
        elif problems:
            ours.versioned(version, head.places)
        ours.controls = folded(self._rows(name, CONTROL, after, last), ours.controls)._replace(row=last)

    def _versions(self) -> dict[str, Version]:
        """Return what is to be learned, read again from time to time; the learner asks."""
        if time.monotonic() - self._refreshed >= REFRESH:
            self.refresh()
        return {name: one.current for name, one in list(self._experiments.items())}

    def _publish(self, name: str, known: Known, fold: Fold | None) -> None:
        """Decide by this from now on; the learner says so."""
        with self._reading:
            ours = self._experiments.get(name)
            if ours is not None and ours.version == known.version and (known.seq or ours.known.read):
                ours.known, ours.fold, ours.snapshot_at = known, fold, time.monotonic()

    def ready(self) -> tuple[bool, str]:
        """Say whether decisions can be made and written, or why not."""
        try:
            self.store.now()
        except StoreDown as error:
            return False, str(error)
        if self.learner.failed is not None:
            return False, self.learner.failed
        return True, "ready" if self._experiments else "ready, with no experiment yet"

    # Deciding.

    async def decide(self, name: str, asked: Asked) -> Decided:
        """Decide for a user. The answer is in the log, or says that it is not."""
        ours, id_ = self.experiment(name), asked.decision_id or fresh_id()
        if asked.dry_run:
            known, key = ours.known, dry_key(ours.key)
            return answer(id_, decided(known, ours.controls, self.everywhere, key, id_, asked), logged=False)
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

    def make(self, ours: Experiment, asked: Asked, id_: str | None = None) -> Made:
        """Decide by what is known now; nothing is in the log by this. Raises InvalidActions."""
        id_ = id_ or asked.decision_id or fresh_id()
        known, controls, everywhere = ours.known, ours.controls, self.everywhere
        return self._made(ours, id_, asked, decided(known, controls, everywhere, ours.key, id_, asked))

    def make_all(self, ours: Experiment, asked: Sequence[tuple[str, Asked]]) -> list[Made | None]:
        """Do the same for several ids at once; None: that one is not as simple, and is asked for by itself."""
        bodies = decided_all(ours.known, ours.controls, self.everywhere, ours.key, asked)
        pairs = zip(asked, bodies, strict=True)
        return [None if body is None else self._made(ours, id_, one, body) for (id_, one), body in pairs]

    def _made(self, ours: Experiment, id_: str, asked: Asked, body: dict[str, Any]) -> Made:
        first, second = body["control"]
        ask = Ask(ours.name, DECISION, id_, canonical(body), sent(asked), (first, second))
        return Made(self, ours, id_, body, ask)

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
            raise Conflict(settled.words or f"decision {shown(made.id_)} was asked before with other content")
        if settled.verdict == SAME and settled.event is not None:
            return answer(made.id_, msgspec.json.decode(settled.event.body))
        self.learner.wake()
        return self.written(made)

    def written(self, made: Made) -> Decided:
        """Return the answer to a decision that was just written."""
        body = made.body
        self.counts.decisions[made.ours.name, body["action"], body["mode"], body["kind"]] += 1
        return answer(made.id_, body)

    def unlogged(self, made: Made, why: str) -> Decided:
        """Return the safe action, loudly: nothing of it is in the log."""
        words = f"not logged, so the safe action: {why}"
        told = {**made.body, **safely(made.ours.known, UNLOGGED, words)}
        self.counts.decisions[made.ours.name, told["action"], told["mode"], UNLOGGED] += 1
        return answer(made.id_, told, logged=False)

    # Outcomes.

    async def learn(self, name: str, outcome: Outcome) -> Told:
        """Take in signals of a decision, each once, whenever they come."""
        ours = self.experiment(name)
        told = self.told(ours, outcome, await self.writer.append(self.telling(ours, outcome)))
        self.learner.wake()
        return told

    def telling(self, ours: Experiment, outcome: Outcome) -> Ask:
        """Return the row that an outcome asks for. Raises InvalidOutcome."""
        values = values_of(ours.problem, outcome.values)
        body = canonical({"of": outcome.decision_id, "values": values})
        own = digest(canonical([outcome.decision_id, values])) if outcome.outcome_id is not None else b""
        return Ask(
            ours.name, OUTCOME, outcome.outcome_id or "", body, own, of=outcome.decision_id, values=values
        )  # fmt: skip

    def told(self, ours: Experiment, outcome: Outcome, settled: Settled) -> Told:
        """Return what became of an outcome, or raise why it was refused."""
        if settled.verdict == UNKNOWN:
            self.counts.outcomes[ours.name, "unknown"] += 1
            raise UnknownDecision(settled.words)
        if settled.verdict == CONFLICT:
            self.counts.outcomes[ours.name, "conflict"] += 1
            raise Conflict(settled.words)
        late = late_in(ours.problem, settled)
        kind = "same" if settled.verdict == SAME else "late" if late else "taken"
        self.counts.outcomes[ours.name, kind] += 1
        return Told(outcome.decision_id, list(settled.taken), list(settled.known), late)

    async def learn_all(self, name: str, outcomes: Sequence[Outcome]) -> list[Told | Refusal]:
        """Take in several outcomes, each by itself."""
        self.experiment(name)
        told = await asyncio.gather(*(self.learn(name, one) for one in outcomes), return_exceptions=True)
        return [told_of(one, outcomes[i].decision_id) for i, one in enumerate(told)]

    # Controls: who may decide.

    async def open(self, name: str, problem: Problem, actor: str, reason: str, mode: str = "live") -> None:
        """Serve a problem: as a new experiment, or the same as before; a changed one is a new version."""
        if name in self._experiments:
            wanted, said = canonical(problem.plain()), self._asked_for(name)
            if wanted not in said:
                await self.new_version(name, problem.plain(), actor, reason)
            elif wanted != said[-1]:  # a file that was not changed since does not undo what was changed elsewhere
                log.warning("%r is played by version %d, which is newer than what was given", name, len(said))
            return
        check_names(title(name, "the experiment's name"), problem)
        told, share = mode_of(mode, None)
        body = {"version": 1, "problem": problem.plain(), "actor": actor, "reason": reason}
        settled = await self.writer.append(Ask(name, PROBLEM, "1", in_order(body)))
        if settled.verdict == CONFLICT and settled.event is not None:  # another process was first, maybe with another
            await asyncio.to_thread(self.refresh)
            return await self.open(name, problem, actor, reason, mode)
        await self._control(name, {"what": MODE, "mode": told, "share": share}, actor, reason)

    def _asked_for(self, name: str) -> list[bytes]:
        """Return the problem as it was said, version by version."""
        rows = self.store.of_kind(name, PROBLEM)
        return [canonical(msgspec.json.decode(row.body)["problem"]) for row in rows]

    async def new_version(self, name: str, problem: dict[str, Any], actor: str, reason: str) -> int:
        """Play a changed problem from now on, or say why that would void the guarantee."""
        ours = self.experiment(name)
        wanted = Problem.from_plain(problem)
        following(ours.current, wanted)
        number = ours.version + 1
        body = {"version": number, "problem": wanted.plain(), "actor": actor, "reason": reason}
        settled = await self.writer.append(Ask(name, PROBLEM, str(number), in_order(body)))
        if settled.verdict == CONFLICT:
            raise Conflict(f"version {number} of {shown(name)} was made by somebody else meanwhile; look at it first")
        await asyncio.to_thread(self.refresh)
        return number

    async def set_mode(self, name: str, mode: str, share: float | None, actor: str, reason: str) -> Changed:
        """Change the mode of an experiment."""
        self.experiment(name)
        told, part = mode_of(mode, share)
        return await self._control(name, {"what": MODE, "mode": told, "share": part}, actor, reason)

    async def kill(self, name: str | None, actor: str, reason: str) -> Changed:
        """Serve the safe action alone from now on, in every process; of no name: in every experiment."""
        return await self._control(name, {"what": KILL}, actor, reason)

    async def revive(self, name: str | None, actor: str, reason: str) -> Changed:
        """Let go of the kill switch."""
        return await self._control(name, {"what": REVIVE}, actor, reason)

    async def acknowledge(self, name: str, doubt: str, actor: str, reason: str) -> Changed:
        """Go on although something contradicts safety, on a person's word."""
        doubts = self.experiment(name).doubts
        if doubt not in doubts:
            known = f"in doubt are {shown(list(doubts))}" if doubts else "nothing is"
            raise InvalidOutcome(f"{shown(doubt)} is not in doubt; {known}")
        return await self._control(name, {"what": ACKNOWLEDGE, "name": doubt}, actor, reason)

    async def _control(self, name: str | None, told: dict[str, Any], actor: str, reason: str) -> Changed:
        """Write a control, and obey it."""
        if name is not None and told["what"] != MODE:
            self.experiment(name)
        body = canonical({**told, "actor": actor, "reason": reason})
        settled = await self.writer.append(Ask(EVERYWHERE if name is None else name, CONTROL, "", body))
        await asyncio.to_thread(self.refresh)
        now = self.everywhere if name is None else self.experiment(name).controls
        row = 0 if settled.event is None else settled.event.seq
        return Changed(now.mode, now.share, (now.killed or self.everywhere.killed) is not None, row)

    # Looking.

    def figures(self, name: str) -> dict[str, Any]:
        """Return what the page shows of an experiment: counted from the log, with what is known and who may decide."""
        ours, known, everywhere = self.experiment(name), self.experiment(name).known, self.everywhere.killed
        tally = self._tallies.setdefault(name, Tally(name))
        tally.follow(self.store)
        return figures_of(
            tally,
            self.store.now(),
            mode=ours.mode,
            share=ours.share,
            killed=everywhere or ours.killed,
            killed_everywhere=everywhere is not None,
            version=ours.version,
            snapshot_age_s=time.monotonic() - ours.snapshot_at if known.seq < tally.head else 0.0,
            max_age_s=self.max_age,
            doubts=[{"name": doubt, "sentence": words} for doubt, words in ours.doubts.items()],
            health=health_of(known.policy, known.state, known.notes).plain(),
        )

    def explain(self, name: str, id_: str) -> dict[str, Any]:
        """Return a decision with what was asked, the bounds it was made by, and what came of it."""
        ours = self.experiment(name)
        event = self.store.find(name, DECISION, id_)
        if event is None:
            raise UnknownDecision(f"{shown(id_)} is no decision of {shown(name)}")
        body = msgspec.json.decode(event.body)
        return {
            "decision_id": id_,
            "at": event.at / 1e6,
            "row": event.seq,
            "place": event.place,
            "chain": event.chain.hex(),
            **body,
            "outcome": self.store.answers(name, event.place),
            "words": in_words(ours.problem, body),
        }


def check_names(name: str, problem: Problem) -> None:
    """Refuse names that mean something else by HTTP."""
    if name in RESERVED:
        raise InvalidProblem(f"the experiment is called {name!r}, as a part of the desk's own addresses is; rename it")
    taken = next((signal for signal in problem.signals if signal in OUTCOME_WORDS), None)
    if taken is not None:
        raise InvalidProblem(f"a signal is called {taken!r}, as a field of every outcome that is sent is; rename it")


def in_order(body: Any) -> bytes:
    """Return a problem's row: names stay in the order in which they were said."""
    return msgspec.json.encode(body)


def sent(asked: Asked) -> bytes:
    """Return the digest of what a client asked under an id of its own; empty: it gave none."""
    return digest(canonical([asked.context, asked.only, asked.deferred])) if asked.decision_id is not None else b""


def digest(content: bytes) -> bytes:
    """Return what tells one content from another."""
    return hashlib.sha256(content).digest()
