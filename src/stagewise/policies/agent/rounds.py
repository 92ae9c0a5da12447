"""What an agent does round by round: decide, and learn each outcome when its turn has come."""

import time
from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from threading import Lock
from typing import Any

import numpy as np

from stagewise.policies.agent.adopted import Adopted
from stagewise.policies.agent.deadlines import deadlines_for
from stagewise.policies.agent.guard import guarded, look_for_drift
from stagewise.policies.agent.identity import Identity
from stagewise.policies.agent.ledger import ORDERS, Ledger, Order
from stagewise.policies.agent.notes import Notes
from stagewise.policies.agent.offers import offered_by
from stagewise.policies.agent.outcomes import ABSENT, check_action
from stagewise.policies.agent.ownership import Ownership
from stagewise.policies.agent.parts import own_outcome, parts_in_time, told_by, untold
from stagewise.policies.agent.told import Values, costs_of
from stagewise.policies.learning import Learning
from stagewise.policies.policy import Played, Policy, check_verbs
from stagewise.policies.problem import Problem
from stagewise.problem.checks import one_of, seed_of
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.problem.window import Window, clock_of, moment
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

NEW = tuple.__new__  # of named tuples: their own takes twice as long, and every round makes two
PREPARED = ("_ours", "_choose", "_learn_in_place", "_values", "_told_as", "_costs", "_costly", "_alone", "_saving")


class Rounds:
    """A policy with its memory, and the decisions whose outcomes are on their way."""

    def __init__(
        self,
        policy: Policy | Problem,
        seed: int | np.random.Generator = 0,
        order: Order = "decision",
        *,
        name: str = "",
        windows: Mapping[str, Window] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(policy, Problem):
            windows = {**policy.windows, **({} if windows is None else windows)}
            policy = policy.policy()
        check_verbs(policy)
        self.policy: Policy = policy
        self.order = one_of(order, ORDERS, "order")
        self.seed = seed_of(seed.integers(2**63) if isinstance(seed, np.random.Generator) else seed)
        self.clock = clock_of(clock)
        self.round = 0
        self._who = Identity(self.seed, name)
        self._state: Any = policy.start()
        self._learned = 0  # how often the memory was changed
        ours = policy if isinstance(policy, Learning) else None
        names = ("outcome",) if ours is None else ours.signal_names
        self._ledger = Ledger(names, ours is not None and ours.apart, self.order == "arrival")
        self._deadlines = deadlines_for(ours, windows)
        if self._deadlines is not None and self.order == "arrival":
            raise InvalidProblem(
                "order is 'arrival' and there are windows; when an outcome is learned would depend on what it is: what "
                "happens is told at once, and what does not only when the window closes, so leave order out"
            )
        self._adopted = Adopted()
        self._plainly = self._deadlines is None  # no decision has a date, and none was made elsewhere
        self._files = Ownership()
        self._notes = Notes()  # what it counts beside the memory
        self._told = costs_of(ours)
        self._prepare()

    def _prepare(self) -> None:
        """Set what follows from the policy or is never copied: its verbs, and locks, of which `_saving` comes first."""
        self._alone, self._saving = Lock(), Lock()
        self._take_verbs()

    def _take_verbs(self) -> None:
        """Set what follows from the policy."""
        policy = self.policy
        self._ours = ours = policy if isinstance(policy, Learning) else None  # None: three verbs are all that is known
        own = ours is not None and type(ours).decide is Learning.decide
        self._choose: Callable[..., Decision] = getattr(policy, "choose" if own else "decide")
        # in place: what was kept here is trusted
        self._learn_in_place: Callable[..., Any] = policy.learn if ours is None else ours.learn_in_place
        self._values: Callable[[Any, Any], Any] = own_outcome if ours is None else ours.values
        self._told_as: Callable[[Any], Any] = untold if ours is None else ours.told
        self._costs = range(1, 1 if ours is None else 1 + len(ours.thresholds.names))
        self._costly = len(self._costs) > 0  # an outcome is not whole without costs

    def __repr__(self) -> str:
        what = f"{len(names)} actions" if (names := getattr(self.policy, "names", None)) else type(self.policy).__name__
        return f"<Agent of {what}, round {self.round}, {self.waiting} waiting, {self.held} held>"

    def __getstate__(self) -> dict[str, Any]:
        """Return a moment of the agent that nobody shares, for a copy or a pickle, whatever other threads do."""
        with self._alone:
            kept = {name: value for name, value in vars(self).items() if name not in PREPARED}
            kept["policy"] = copy(self.policy)  # it works out some of its numbers when they are first asked for
            kept["_state"] = deepcopy(self._state)
            kept |= {name: part.copied() for name, part in kept.items() if hasattr(part, "copied")}
            return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._prepare()

    @property
    def name(self) -> str:
        """What tells its ids and random numbers from those of other agents of its seed."""
        return self._who.name

    @property
    def state(self) -> Any:
        """A copy of the policy's memory."""
        with self._alone:
            return deepcopy(self._state)

    @property
    def waiting(self) -> int:
        """How many decisions lack a signal of their outcome; `pending` tells which."""
        return len(self._ledger.open) + self._ledger.lacking

    @property
    def held(self) -> int:
        """How many decisions have outcomes that are known and not learned yet; `pending` tells why."""
        return self._ledger.holding

    def decide(self, actions: Any = None, *, only: Any = None, now: Any = None) -> Decision:
        """Choose among the actions: an action set, a table of features, or for a problem the context of a user.

        `only` names the actions that are on offer in this call; `now` is as `time.time` tells it.
        """
        if only is not None:
            actions = offered_by(self._ours, actions, only)
        with self._alone:
            who, deadlines, round_ = self._who, self._deadlines, self.round
            if deadlines is not None or now is not None:
                now = self._pass(now)
            draw = NEW(Draw, (who.key, who.run, round_))
            decision, notes = self._choose(self._state, actions, draw), self._notes
            ours, cause = self._ours, decision.cause
            if ours is not None and (notes.doubts or (cause is not None and cause.contradicts)):
                decision = self._guarded(ours, decision, actions, draw)
            elif cause is not None:
                notes.stays += 1
            index, plays = decision.index, notes.plays
            plays[index] = plays.get(index, 0) + 1
            if decision._seen is not None:
                notes.recent.append(decision)
            decision._by = who.mark
            if ours is None:
                self._ledger.open[round_] = decision
            elif decision._unfollowed:
                self._ledger.open[round_] = Played.by(decision)
                self._state = ours.follow(self._state, decision)
                self._learned += 1
            else:
                self._ledger.open[round_] = NEW(Played, (decision[0], index, decision[2], decision._safe))  # as `by`
            if deadlines is not None:
                deadlines.date(round_, now)
            if self._told is not None:
                self._told.add(round_, index, self._ledger)
            self.round = round_ + 1
            return decision

    def _guarded(self, ours: Learning, decision: Decision, actions: Any, draw: Draw) -> Decision:
        """Return the decision, or the safe action where something contradicts safety that nobody has acknowledged."""
        state = self._state
        decision = guarded(
            ours, state, self._notes, decision, actions, lambda policy: policy.choose(state, actions, draw)
        )
        self._notes.stays += decision.cause is not None
        return decision

    def learn(
        self,
        decision: Decision | int | str,
        reward: Any = ABSENT,
        cost: Any = ABSENT,
        *,
        now: Any = None,
        **signals: Any,
    ) -> None:
        """Take in an outcome of a decision, given as itself, by its id or by its round; a bad one is refused at once.

        The outcome is `reward` and `cost`, or any of the signals by name, the others later; each counts once. `now` is
        when it came, where there are windows and the clock is not to be asked.
        """
        with self._alone:
            ledger, made = self._ledger, isinstance(decision, Decision)
            if made and self._plainly and decision._by == self._who.mark:  # type: ignore[union-attr]
                round_: int = decision.round  # type: ignore[union-attr]
            else:
                round_ = self._who.place_of(decision, self._adopted, self.round)
            played, values = ledger.open.get(round_), None
            if played is not None and now is None and self._plainly:
                if signals:
                    alone = reward is ABSENT and cost is ABSENT and len(signals) == len(ledger.names)
                    values = self._told_as(signals) if alone else None
                elif reward is not ABSENT and not (cost is ABSENT and self._costly):
                    try:
                        values = self._values(reward, None if cost is ABSENT else cost)
                    except InvalidOutcome:
                        self._notes.refused += 1
                        raise
            if values is None:
                self._learn_parts(decision, round_, reward, cost, now, signals)
                return
            if made and decision.action is not played.action:  # type: ignore[union-attr]
                check_action(decision, played)
            if self._told is not None:
                self._hear(round_, values.tolist(), self._costs)
            if round_ == ledger.oldest or ledger.at_once:
                self._state = self._learn_in_place(self._state, played, values)
                self._learned += 1
                ledger.oldest = round_ + 1
                del ledger.open[round_]
                self._notes.rest -= 1
                if self._notes.rest <= 0:
                    self._look()
            else:
                self._hold(round_, played, values)
            if ledger.rows:
                self._learn_due()

    def _learn_parts(self, decision: Any, round_: int, reward: Any, cost: Any, now: Any, signals: Any) -> None:
        """Take in an outcome that may be a part, or late, or of a decision that was made elsewhere."""
        ledger, deadlines = self._ledger, self._deadlines
        if round_ >= self.round:
            raise InvalidOutcome(f"the outcome is for round {round_}; this agent did not make it")
        try:
            values, given = told_by(self._ours, ledger.names, reward, cost, signals)
        except InvalidOutcome:
            self._notes.refused += 1
            raise
        if deadlines is not None or now is not None:
            self._pass(now)
        parts = parts_in_time(ledger, deadlines, decision, round_, given)
        if self._ours is None:
            self._hold(round_, parts.played, values)
        else:
            ledger.put(round_, values, parts.given)
            self._hear(round_, values, parts.given)
        self._learn_due()
        if parts.late and deadlines is not None:  # what came in time is taken
            deadlines.refuse(parts.late, round_, ledger.names)

    def _hold(self, round_: int, played: Any, values: Any) -> None:
        """Write down a whole outcome."""
        if self._ours is None:
            self._learn_in_place(self._state, played, values)  # a rehearsal: what is refused is refused now
            self._ledger.put_whole(round_, values)
        else:
            self._ledger.put(round_, values.tolist(), range(len(values)))

    def _hear(self, round_: int, values: Values, given: Iterable[int]) -> None:
        """Count what was told at once, whatever learning waits for; NaN: it is left out."""
        if self._told is not None and self._told.tell(round_, values, given):
            self._told.note(self.policy, self._notes)

    def _learn_due(self) -> None:
        """Learn what is held behind nothing any more, in the order of the decisions."""
        for played, values in self._ledger.due(self.round):
            self._state = self._learn_in_place(self._state, played, values)
            self._learned += 1
            self._notes.rest -= 1
            if self._notes.rest <= 0:
                self._look()
        if self._adopted.places:
            self._adopted.tidy(self._ledger.played, self.waiting + self.held)

    def _look(self, at_once: bool = False) -> None:
        """Hold means against earlier ones, where a signal is due for it."""
        memory: Any = getattr(self._state, "memory", None)  # of one's own policy there may be none, and nobody looks
        look_for_drift(self._ours, memory, self._notes, at_once)

    def _pass(self, now: Any) -> float:
        """Let time pass, and close the windows that end; return what the clock says."""
        told = moment(self.clock() if now is None else now)
        if self._deadlines is not None:
            for round_, span in self._deadlines.closing(told, self.round):
                if self._ledger.close(round_, span.signal, span.value):
                    self._hear(round_, {span.signal: span.value}, (span.signal,))
            self._learn_due()
        return told

    def _learner(self, what: str) -> Learning:
        """Return the policy, of which more than three verbs is needed here."""
        if self._ours is None:
            raise InvalidProblem(f"this policy has only start, decide and learn; {what} for policies of stagewise")
        return self._ours
