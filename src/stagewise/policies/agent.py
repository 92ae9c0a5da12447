"""An agent: a policy with its memory and its seed, for use by hand."""

import time
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from stagewise.files.paths import content_of, path_of
from stagewise.policies.adopted import Adopted, sent
from stagewise.policies.by_segment import names_met
from stagewise.policies.deadlines import deadlines_for
from stagewise.policies.frames import Asked, rows_in
from stagewise.policies.guard import acknowledged, guarded, looked
from stagewise.policies.health import Health, health_of
from stagewise.policies.identity import Identity
from stagewise.policies.learning import Learning
from stagewise.policies.ledger import Ledger
from stagewise.policies.notes import Notes
from stagewise.policies.offers import offered_by
from stagewise.policies.outcomes import ABSENT, check_action, names_of, values_of
from stagewise.policies.ownership import Ownership
from stagewise.policies.pending import pending_in
from stagewise.policies.policy import Played, Policy, State, check_verbs
from stagewise.policies.problem import Problem
from stagewise.policies.repeats import check_new, mark_of, remember
from stagewise.policies.report import Report, report_of
from stagewise.policies.saved import ORDERS, Order, check_kind, check_same, read, written
from stagewise.policies.saved_waits import Waits, waits_content
from stagewise.policies.snapshot import Snapshot
from stagewise.problem.checks import as_array, entries_of, is_listing, kept, one_of, outcomes, seed_of, shown, switch
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.problem.tables import named
from stagewise.problem.window import Window, clock_of, moment
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.records.pending import Pending

NEW = tuple.__new__  # of named tuples: their own takes twice as long, and every round makes two
PREPARED = ("_ours", "_choose", "_take", "_values", "_costly", "_alone", "_saving")


class Agent:
    """Decide, learn, save, load.

    Outcomes may come late, in any order or never, where that does not depend on what they are: the confidence sets hold
    for all rounds at once, so deciding on older knowledge is only more cautious. They are learned in the order of the
    decisions: an outcome is held until every earlier decision is answered or given up. `order="arrival"` learns each
    at once, which is valid only under one more promise: nothing that is offered depends on outcomes that exist but were
    not learned yet (docs/guide.md). A signal of a decision can be given once, all signals together or each when it
    comes; where the policy keeps them `apart`, each is learned by itself. `windows` say after which time a missing
    signal counts as what; `clock` tells the time where a call does not. Threads may share an agent: one call at a time
    has its memory, the others wait.

    Ids and random numbers follow from `seed` and `name`: two agents that share both share them.

    >>> import stagewise as sw
    >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5), seed=1)
    >>> decision = agent.decide(sw.Arms(2))
    >>> agent.learn(decision.id, reward=0.7)
    >>> agent.round, agent.waiting, agent.held
    (1, 1, 1)
    >>> agent.learn(decision.id, cost=0.1)
    >>> agent.round, agent.waiting, agent.held
    (1, 0, 0)
    """

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
        names = ("outcome",) if ours is None else names_of(ours)
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
        self._take: Callable[..., Any] = policy.learn if ours is None else ours.take  # trusts what was kept here
        self._values: Callable[[Any, Any], Any] = own_outcome if ours is None else ours.values
        self._costly = ours is not None and len(ours.thresholds.names) > 0  # an outcome is not whole without costs

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

    def pending(self) -> Pending:
        """Say for each signal how many outcomes are missing and held back, since which decision, and why."""
        with self._alone:
            return pending_in(self._ledger, self._deadlines, lambda r: self._who.id_at(r, self._adopted))

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
            if round_ >= notes.look_at or decision.fallback is not None or notes.doubts:
                decision = self._guarded(decision, actions, draw)
            notes.plays[decision.index] = notes.plays.get(decision.index, 0) + 1
            if decision._seen is not None:
                notes.recent.append(decision)
            decision._by = who.mark
            if self._ours is None:
                self._ledger.open[round_] = decision
            elif decision._unfollowed:
                self._ledger.open[round_] = Played.by(decision)
                self._state = self._ours.follow(self._state, decision)
                self._learned += 1
            else:
                self._ledger.open[round_] = NEW(Played, (*decision[:3], decision._start))  # as `Played.by`
            if deadlines is not None:
                deadlines.date(round_, now)
            self.round = round_ + 1
            return decision

    def _guarded(self, decision: Decision, actions: Any, draw: Draw) -> Decision:
        """Return the decision, or the safe action where something contradicts safety that nobody has acknowledged."""
        if self._ours is None:
            return decision
        state = self._state
        decision = guarded(
            self._ours, state, self._notes, decision, actions, lambda policy: policy.choose(state, actions, draw)
        )
        self._notes.stays += decision.fallback is not None
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

        The outcome is `reward` and `cost`, or any of the signals by name, the others later; each counts once.
        """
        with self._alone:
            ledger, made = self._ledger, isinstance(decision, Decision)
            if made and self._plainly and decision._by == self._who.mark:  # type: ignore[union-attr]
                round_: int = decision.round  # type: ignore[union-attr]
            else:
                round_ = self._who.place_of(decision, self._adopted, self.round)
            played = ledger.open.get(round_)
            if (
                played is None
                or signals
                or reward is ABSENT
                or (cost is ABSENT and self._costly)
                or now is not None
                or not self._plainly
            ):
                self._learn_parts(decision, round_, reward, cost, now, signals)
                return
            if made and decision.action is not played.action:  # type: ignore[union-attr]
                check_action(decision, played)
            try:
                values = self._values(reward, None if cost is ABSENT else cost)
            except InvalidOutcome:
                self._notes.refused += 1
                raise
            if round_ == ledger.oldest or ledger.at_once:
                self._state = self._take(self._state, played, values)
                self._learned += 1
                ledger.oldest = round_ + 1
                del ledger.open[round_]
            else:
                self._hold(round_, played, values)
            if ledger.rows:
                self._learn_due()

    def _learn_parts(self, decision: Any, round_: int, reward: Any, cost: Any, now: Any, signals: Any) -> None:
        """Take in an outcome that may be a part, or late, or of a decision that was made elsewhere."""
        ledger, deadlines, policy = self._ledger, self._deadlines, self._ours
        if round_ >= self.round:
            raise InvalidOutcome(f"the outcome is for round {round_}; this agent did not make it")
        if policy is None and (signals or reward is ABSENT):
            raise InvalidOutcome(
                "this policy has only start, decide and learn, so its outcomes have no names; give reward= and cost="
            )
        try:
            values, given = (None, [0]) if policy is None else values_of(policy, ledger.names, reward, cost, signals)
        except InvalidOutcome:
            self._notes.refused += 1
            raise
        if deadlines is not None or now is not None:
            self._pass(now)
        late = [] if deadlines is None else [k for k in given if deadlines.is_late(round_, k)]
        given = [k for k in given if k not in late and ledger.missing(round_, k)] if late else given
        if late and not given and deadlines is not None:
            deadlines.refuse(late, round_, ledger.names)
        played = ledger.played(round_)
        again = [ledger.names[k] for k in given if not ledger.missing(round_, k)]
        if played is None or len(again) == len(ledger.names):
            raise InvalidOutcome(
                f"the outcome is for round {round_}; its outcome was given already, and once is all it counts, or "
                "it was forgotten"
            )
        if isinstance(decision, Decision):
            check_action(decision, played)
        if again:
            raise InvalidOutcome(
                f"the outcome is for round {round_}; its {again[0]!r} was given already or given up, and once is all "
                "it counts"
            )
        if values is None:
            self._hold(round_, played, own_outcome(reward, None if cost is ABSENT else cost))
        else:
            ledger.put(round_, values, given)
        self._learn_due()
        if late and deadlines is not None:  # what came in time is taken
            deadlines.refuse(late, round_, ledger.names)

    def _hold(self, round_: int, played: Any, values: Any) -> None:
        """Write down a whole outcome."""
        if self._ours is None:
            self._take(self._state, played, values)  # a rehearsal: what is refused is refused now
            self._ledger.put_whole(round_, values)
        else:
            self._ledger.put(round_, values.tolist(), range(len(values)))

    def _learn_due(self) -> None:
        """Learn what is held behind nothing any more, in the order of the decisions."""
        for played, values in self._ledger.due(self.round):
            self._state = self._take(self._state, played, values)
            self._learned += 1
        if self._adopted.places:
            self._adopted.tidy(self._ledger.played, self.waiting + self.held)

    def _pass(self, now: Any) -> float:
        """Let time pass, and close the windows that end; return what the clock says."""
        told = moment(self.clock() if now is None else now)
        if self._deadlines is not None:
            for round_, span in self._deadlines.closing(told, self.round):
                self._ledger.close(round_, span.signal, span.value)
            self._learn_due()
        return told

    def expire(self, now: Any = None) -> int:
        """Close the windows that have ended by now, and return how many decisions are answered by that.

        Every call that tells the time does so; this one is for times when there is none.
        """
        with self._alone:
            before = self.waiting
            self._pass(now)
            return before - self.waiting

    def adopt(self, decision: Decision | Mapping[str, Any], now: Any = None) -> int:
        """Take in a decision of a `Replica`, itself or as its `plain` wrote it; return its round in this agent's order.

        Outcomes then come by its id. Adopt a decision before its outcome exists, as by logging it before it is acted
        on: decisions count in the order in which they are adopted (docs/theory/order.md).
        """
        made, policy = sent(decision), self._ours
        if policy is None:
            raise InvalidProblem("this policy has only start, decide and learn; replicas are for policies of stagewise")
        with self._alone:
            mark, _, replica = made._by.partition(".")
            if not replica or not self._who.bears(mark):
                raise InvalidOutcome(f"the decision is {made.id!r}; no replica of this agent made it")
            if self._adopted.knows(made.id):
                raise InvalidOutcome(f"the decision is {made.id!r}; it was adopted already, and once is all it counts")
            played = policy.made(Played(made.action, made.index, made.step))
            if made._unfollowed:
                policy.follow(self._state, made)  # a rehearsal: what is refused changes nothing
            told = self._pass(now) if self._deadlines is not None or now is not None else 0.0
            if made._unfollowed:
                self._state, self._learned = policy.follow(self._state, made), self._learned + 1
            place, self._plainly = self.round, False
            self._adopted.add(made.id, place)
            self._ledger.open[place] = Played(played.action) if made._unfollowed else played
            if self._deadlines is not None:
                self._deadlines.date(place, told)
            self.round = place + 1
            return place

    def snapshot(self) -> Snapshot:
        """Return what is known now as a value that does not change, for a `Replica`; with what contradicts safety."""
        with self._alone:
            policy: Any = self._ours
            check_kind(policy)
            if self.round >= self._notes.look_at:
                looked(policy, self._state.memory, self._notes, self.round)
            doubts = tuple(self._notes.open_doubts.values())
            return Snapshot(copy(policy), self._state.memory.tobytes(), self._learned, self.seed, self.name, doubts)

    def forget(self, before: int) -> int:
        """Give up waiting for the outcomes of all rounds below `before`, and return how many there were.

        What was held behind them is learned. That leaves the bounds valid only where neither the outcome nor later ones
        decide whether it is given up: go by age.
        """
        if isinstance(before, bool) or not isinstance(before, int | np.integer) or not 0 <= before <= self.round:
            raise InvalidOutcome(
                f"before is {shown(before)}; it must be a round from 0 to {self.round}, which is the next"
            )
        if self._deadlines is not None:
            raise InvalidOutcome(
                "this agent has windows, and forgetting would drop what was not reported and keep what was; windows "
                "close what is missing by age (expire)"
            )
        with self._alone:
            given_up = self._ledger.give_up(int(before))
            self._learn_due()
        return given_up

    def withdraw(self, decision: Decision | int | str) -> None:
        """Take back a decision that was not carried out: nothing is learned of it, and reports do not count it.

        A message that could not be sent has no outcome; waited for, it would count as one that nobody answered. Valid
        where what keeps a decision from being carried out does not depend on what would have come of it.
        """
        with self._alone:
            round_ = self._who.place_of(decision, self._adopted, self.round)
            played = self._ledger.withdraw(round_)
            if played is None:
                raise InvalidOutcome(
                    f"the decision of round {round_} cannot be withdrawn; an outcome of it is known, or it was given up"
                )
            if round_ not in self._adopted.taken:
                told = played if self._ours is None else decision if isinstance(decision, Decision) else None
                self._notes.take_back(round_, played.ray if told is None else told.index)
            self._learn_due()

    def learn_log(self, features: Any, rewards: Any, costs: Any = None, *, again: bool = False) -> None:
        """Take in logged data of any earlier policy: actions (n, d) or arms (n,), rewards (n,), costs (n,) or (n, m).

        Costs may also be a mapping of columns by name, or a data frame whose columns have the limits' names. True and
        False count as 1 and 0.

        The bounds stay valid as long as each logged action was chosen without looking at its own outcome or later ones.
        A log is one batch, in whatever order its rows stand, and is learned at once, also while decisions are open:
        then nothing offered so far may depend on its outcomes, nor its actions on the outcomes that are still open.
        A log that was learned already is refused, unless `again` says that these are other outcomes.
        """
        policy = self._ours
        if policy is None:
            raise InvalidProblem("this policy has only start, decide and learn; a log is for policies of stagewise")
        actions, seen = policy.logged(features), outcomes(rewards, "the logged rewards")
        if seen.shape != (len(actions),):
            raise InvalidOutcome(
                f"the logged rewards have shape {seen.shape}; they must be one for each of {len(actions)}"
            )
        rows, values = rows_of(costs, len(actions)), []
        if len(rows) != len(actions):
            raise InvalidOutcome(f"there are {len(rows)} logged costs; they must be one row for each of {len(actions)}")
        for i, row in enumerate(rows):
            try:
                values.append(policy.values(float(seen[i]), row))
            except InvalidOutcome as error:
                raise InvalidOutcome(f"row {i} of the log: {error}") from None
        self._absorb(policy, actions, values, again)

    def learn_frame(
        self,
        frame: Any,
        *,
        reward: Any = None,
        action: Any = None,
        costs: Any = None,
        context: Any = None,
        names: Any = None,
        again: bool = False,
    ) -> None:
        """Take in logged data from a frame of pandas, polars or Arrow, or a mapping of columns: all of it, or nothing.

        Columns are taken by their names, wherever they stand. `action` names the column of the arms, counted from 0 or,
        with `names` in their order, by name; for actions with features `context` lists the columns of the features of
        what was played. `costs` maps each limit to its column; left out, the columns have the limits' names. True and
        False count as 1 and 0. For a problem all columns have its names, and the action's is "action", where nothing
        else is said; `costs` and `context` map its names to others. What `learn_log` says of a log holds here.

        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold={"opt_out": 0.02})
        >>> agent = sw.Agent(policy)
        >>> sent = {"opted": [False, True], "template": ["nothing", "offer"], "click": [False, True]}
        >>> told = {"names": ["nothing", "offer"], "costs": {"opt_out": "opted"}}
        >>> agent.learn_frame(sent, action="template", reward="click", **told)
        >>> agent.learn_frame(sent, action="templte", reward="click", **told)
        Traceback (most recent call last):
        stagewise.problem.errors.InvalidActions: action names 'templte', which is no column of the frame (did you mean
        'template'?); its columns are ['opted', 'template', 'click']
        """
        policy = self._ours
        if policy is None:
            raise InvalidProblem("this policy has only start, decide and learn; a log is for policies of stagewise")
        rows = rows_in(policy, frame, Asked(reward, action, costs, context, names))
        if rows is not None:
            self._absorb(policy, rows.actions, rows.values, again)

    def _absorb(self, policy: Learning, actions: Any, values: Any, again: bool) -> None:
        """Take in a log that was checked, once."""
        mark = mark_of(actions, values) if len(actions) else None
        with self._alone:
            self._check_unchanged(policy)
            check_new(self._notes, mark, again)
            self._state = policy.absorb_log(self._state, actions, values)
            self._learned += 1
            self._notes.look_at = 0
            remember(self._notes, mark, len(actions))

    def _check_unchanged(self, policy: Any) -> None:
        """Refuse a log that was read for other actions than there are now."""
        if self._ours is not policy:
            raise InvalidOutcome("an action was added while this log was read; nothing of it is learned, give it again")

    def add_action(self, name: str) -> None:
        """Add an action to the problem; what was learned of the others, and what waits, stays as it is.

        >>> import stagewise as sw
        >>> told = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0)}}
        >>> agent = sw.Agent(sw.Problem(actions=["nothing", "offer"], safe="nothing", **told))
        >>> agent.add_action("sale")
        >>> list(agent.decide().probabilities)
        ['nothing', 'offer', 'sale']
        """
        with self._alone:
            policy: Any = self.policy
            if not hasattr(policy, "problem"):
                raise InvalidProblem("this agent has a policy and no problem; only actions of a problem have names")
            more = policy.problem.with_action(name).policy()
            self._state, self.policy = more.grown(policy, self._state), more
            self._learned += 1
            self._notes.forget_marks()
            self._take_verbs()

    def health(self) -> Health:
        """Return what was declared, held against the data: a verdict and a sentence each; `print` shows a table.

        What contradicts safety is also the fallback of every decision, until it is acknowledged.

        >>> import stagewise as sw
        >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.001)
        >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"opt_out": 0.02}, radius="kl"))
        >>> agent.learn_log([0] * 400, [0.0] * 400, [1.0, 0.0] * 200)
        >>> agent.health()["safe cost of opt_out"].verdict, agent.decide(sw.Arms(2)).action
        ('contradicted', 0)
        """
        with self._alone:
            return health_of(self.policy, self._state, self._notes)

    def acknowledge(self, name: str, note: str = "") -> None:
        """Go on although something contradicts safety, by its name in `health()`; a note says who decided so, and why.

        The bounds rest on what was declared, and after this on your word. Where a declared value is wrong, a new agent
        with true values that is given the log is the better answer.
        """
        if self._ours is None:
            raise InvalidProblem("this policy has only start, decide and learn, and nothing of it is ever in doubt")
        with self._alone:
            found = {
                one.name: one for one in health_of(self.policy, self._state, self._notes) if one.stops(self.policy)
            }
            if isinstance(name, str) and name in found:  # before a decision has met it
                self._notes.doubts.setdefault(name, found[name].sentence)
            acknowledged(self._ours, self._state.memory, self._notes, name, note)

    def report(self, names: Any = None) -> Report:
        """Return where traffic goes, what it earns against the safe action, and what limits and actions still need.

        `names` are those of the listed actions, in their order. `print` shows a table, `sw.draw_report` draws it.

        >>> import stagewise as sw
        >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
        >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.5), seed=1)
        >>> for _ in range(10):
        ...     agent.learn(agent.decide(sw.Arms(2)), reward=0.6, cost=0.1)
        >>> report = agent.report(names=["nothing", "offer"])
        >>> report.rounds, [action.name for action in report.actions], report.limits[0].slack >= 0.0
        (10, ['offer', 'nothing'], True)
        """
        with self._alone:
            told = getattr(self.policy, "names", None) if names is None else names
            return report_of(self.policy, self._state, self._notes, told)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write policy, memory, seed and all that waits to a JSON file, all or nothing; others decide meanwhile.

        The path must be new, or hold what this agent loaded or saved there last: then nobody else went on from it.
        `overwrite` replaces any plain file.
        """
        place, replaces = path_of(path), switch(overwrite, "overwrite")
        check_kind(self.policy)
        with self._saving:
            with self._alone:
                policy: Any = self._ours
                memory, round_, learned, who = self._state.memory.copy(), self.round, self._learned, self._who
                deadlines = None if self._deadlines is None else self._deadlines.copied()
                waits = Waits(self._ledger.copied(), deadlines, self._adopted.copied())
                notes = self._notes.plain()
            content = {
                **self._files.stamp(),
                "seed": self.seed,
                "name": self.name,
                "former": who.former,
                "round": round_,
                "learned": learned,
                "memory": memory.tolist(),
                "order": self.order,
                **waits_content(policy, waits),
                "notes": notes,
                "segments": names_met(policy, memory),
            }
            self._files.write(place, written(policy, content), round_, replaces)

    @classmethod
    def load(
        cls,
        path: str | Path,
        policy: Policy | Problem | None = None,
        *,
        name: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Agent":
        """Return the saved agent; it goes on as if it had never stopped, to the bit.

        It has the policy of the file. With `policy` a file of another policy, or of other settings, is refused.
        Of several that load one file the first to save keeps it, and the others are refused. After a crash decisions
        may have been made that the file does not know: under a new `name` none of their ids and random numbers come
        again, and what waits keeps its ids.
        """
        place = path_of(path)
        content = content_of(place)
        saved = read(place, content)
        if policy is not None:
            check_same(place, saved.policy, policy.policy() if isinstance(policy, Problem) else policy)
        agent = cls(saved.policy, saved.seed, saved.order, name=saved.name, clock=clock)
        agent.round, agent._learned = saved.round, saved.learned
        agent._who = Identity(saved.seed, saved.name, saved.former)
        agent._who = agent._who if name is None else agent._who.renamed(name, saved.round)
        agent._state = State(saved.memory)
        agent._ledger, agent._deadlines, agent._adopted = saved.waits
        agent._plainly = agent._deadlines is None and not agent._adopted.met
        agent._files, agent._notes = Ownership(saved.generation), saved.notes
        agent._files.learn(place, content, saved.round)
        return agent


def own_outcome(reward: Any, cost: Any) -> Outcome:
    """Return an outcome that stays as it is whatever its giver does with a list of costs."""
    return Outcome(kept(reward), kept(cost))


def rows_of(costs: Any, count: int) -> list[Any]:
    """Return the logged costs row by row; a mapping or a data frame holds a column for each constraint."""
    if costs is None:
        return [None] * count
    by_name = named(costs, "the logged costs")
    if by_name is not None:
        if not all(is_listing(column) for column in by_name.values()):
            raise InvalidOutcome("the logged costs hold a number where a column belongs; give one list for each name")
        columns = {name: entries_of(column, "a logged cost", InvalidOutcome) for name, column in by_name.items()}
        if any(len(column) != count for column in columns.values()):
            raise InvalidOutcome(f"the logged costs have columns of other lengths than the {count} logged actions")
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]
    if not is_listing(costs):
        raise InvalidOutcome(
            f"the logged costs are {shown(costs)}; they must be one row of costs for each logged action"
        )
    return list(costs) if isinstance(costs, list | tuple) else list(as_array(costs, "the logged costs", InvalidOutcome))
