"""The rounds of an agent: decide, and learn each outcome in the order of the decisions."""

import time
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np

from stagewise.agent.identity import CallersId, Identity, mark_proposals
from stagewise.agent.learned_state import LearnedState
from stagewise.agent.observed_costs import build_observed_costs
from stagewise.agent.outcome_queue import OutcomeQueue
from stagewise.agent.outcomes import (
    ABSENT,
    MICROSECONDS,
    check_action,
    check_missing,
    parse_values,
    parse_windows,
    reject_late,
    summarize_pending,
)
from stagewise.agent.policy_adapter import PolicyAdapter, adapt_policy, reject_adapter
from stagewise.agent.storage import Ownership
from stagewise.policies.policy import BasePolicy, PlayedAction, Policy, check_policy_protocol
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_choice, check_seed
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.timing import OutcomeWindow, check_clock, parse_timestamp
from stagewise.records.decision import Decision
from stagewise.records.outcome import Pending
from stagewise.records.random_key import RandomKey

Order = Literal["decision", "arrival"]
ORDERS = get_args(Order)
FEW_DUE = 32  # buffered decisions; more are learned in bulk
NEW_TUPLE = tuple.__new__  # of named tuples: their own takes twice as long, and every round makes two
UNSAVED_FIELDS = ("_keeps_rows", "_lock", "_needs_times", "_policy", "_save_lock")


def encode_offer(policy: Any, actions: Any, only: Any, propose: Any, scores: Any) -> Any:
    """Return the actions of a call with those that are eligible, by name for a problem, and what is proposed."""
    if hasattr(policy, "encode_context"):
        return policy.encode_context(actions, only, propose, scores)
    if propose is not None or scores is not None:
        raise InvalidActions(
            ErrorCode.UNSUPPORTED, "propose= and scores= name actions, and only a problem's actions have names"
        )
    if not hasattr(actions, "only"):
        rule = "left out, as the actions are no action set; give sw.FiniteSet(...).only(...)"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "only", only, rule)
    return actions.only(only)


class BaseAgent:
    """A policy with its memory and its pending decisions."""

    def __init__(
        self,
        policy: Policy | Problem,
        seed: int | np.random.Generator = 0,
        learning_order: Order = "decision",
        *,
        name: str = "",
        windows: Mapping[str, OutcomeWindow] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(policy, Problem):
            windows = {**policy.windows, **({} if windows is None else windows)}
            policy = policy.policy()
        check_policy_protocol(policy)
        self.learning_order = check_choice(learning_order, ORDERS, "learning_order")
        self.seed = check_seed(seed.integers(2**63) if isinstance(seed, np.random.Generator) else seed)
        self.clock = check_clock(clock)
        self._identity = Identity(self.seed, name)
        self._learned = LearnedState(adapt_policy(policy))
        self._prepare()
        self._windows, spans = parse_windows(self._policy, windows)
        if spans and self.learning_order == "arrival":
            raise InvalidProblem.conflict(
                "learning_order", "arrival", "there are windows", "leave it out, since outcomes learned on arrival "
                "would precede missing ones and bias the estimates",
            )  # fmt: skip
        ours = self._policy
        names, first, in_order = ours.signal_names, ours.first_reported, self.learning_order == "decision"
        groups = [[k] for k in range(len(names))] if ours.separate_models else [range(len(names))]
        self._queue = OutcomeQueue(names, groups, spans, ours.row_width or 1, in_order, first, ours.value_type)
        self._observed_costs = build_observed_costs(ours, self._queue)
        self._ownership = Ownership()

    def _prepare(self) -> None:
        """Set the fields that are not saved; `_save_lock` is acquired first."""
        self._lock, self._save_lock = Lock(), Lock()
        self._bind_policy()

    def _bind_policy(self) -> None:
        """Set the fields that follow from the policy."""
        self._policy: BasePolicy = self._learned.policy
        self._needs_times = self._policy.needs_times
        self._keeps_rows = self._policy.row_width is not None  # a row alone tells what was played

    def __repr__(self) -> str:
        what = f"{len(names)} actions" if (names := getattr(self.policy, "names", None)) else type(self.policy).__name__
        return f"<Agent of {what}, round {self.round}, {self.pending_count} pending, {self.buffered_count} buffered>"

    def __getstate__(self) -> dict[str, Any]:
        """Return an independent copy of the fields, for a copy or a pickle."""
        with self._lock:
            fields = {name: value for name, value in vars(self).items() if name not in UNSAVED_FIELDS}
            fields["_queue"] = self._queue.clone()
            fields |= {name: fields[name].clone() for name in ("_identity", "_learned", "_ownership")}
            if self._observed_costs is not None:
                fields["_observed_costs"] = self._observed_costs.clone(fields["_queue"])
            return fields

    def __setstate__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields)
        self._prepare()

    @property
    def policy(self) -> Policy:
        return self._policy.adapted if isinstance(self._policy, PolicyAdapter) else self._policy

    @property
    def name(self) -> str:
        """The name, which distinguishes its ids and random numbers from those of other agents of its seed."""
        return self._identity.name

    @property
    def round(self) -> int:
        """The number of decisions so far."""
        return self._queue.end

    @property
    def state(self) -> Any:
        """A copy of the policy's memory."""
        with self._lock:
            return deepcopy(self._learned.state)

    @property
    def pending_count(self) -> int:
        """The number of decisions without a complete outcome; `pending_summary` lists them by signal."""
        return self._queue.pending_count

    @property
    def buffered_count(self) -> int:
        """The number of decisions with outcomes that are known and not learned yet; `pending_summary` says why."""
        return self._queue.buffered_count

    def decide(
        self,
        actions: Any = None,
        *,
        only: Any = None,
        propose: Any = None,
        scores: Any = None,
        now: Any = None,
        id: str | None = None,
    ) -> Decision:
        """Choose among the actions, or play as much of a proposal as is safe.

        With `propose` or `scores` the limits hold whatever is proposed, by whomever, under two conditions: it is
        settled before the decision is drawn, and the mean cost of an action, given the context that the limit's model
        sees, does not depend on why the action was proposed. A model that knows more of the user than the limit can
        break the second: let the limit see its score, in buckets (docs/how-to/guard-your-model.md).

        Args:
            actions: An action set, a table of features, or for a problem the context of a user.
            only: The actions that are offered in this call.
            propose: An action, or a mapping from actions to probabilities; what is missing to 1 is the safe action's.
                As much of it is played as the limits allow, and nothing else but the safe action.
            scores: A mapping from every action to its score, in the range of the reward. The safe mixture with the
                highest score is played; the safe action has the lowest score unless it is given one.
            now: The time, as `time.time` returns it, if the clock is not to be used.
            id: A run and a user, such as "2026-11-19:101". The random numbers are then those that `decide_frame` has
                for this id, and the decision's id ends with it.

        Returns:
            The decision: the action, its probabilities, its bounds, and the reason if the safe action is played.

        Raises:
            InvalidActions: The actions or the context do not fit the policy, or the id is already decided.
            InvalidOutcome: The decisions of the id's run are complete, and their ids forgotten.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}}
            >>> problem = sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals)
            >>> sw.Agent(problem, seed=1).decide().action in ("nothing", "offer")
            True
        """
        if only is not None or propose is not None or scores is not None:
            actions = encode_offer(self._policy, actions, only, propose, scores)
        with self._lock:
            queue, identity = self._queue, self._identity
            at = self._advance_time(now) if queue.windows or now is not None or self._needs_times else 0
            if self._needs_times:
                actions = self._policy.at_time(actions, at / MICROSECONDS)
            if id is not None:
                return self._decide_with_id(self._identify(id), actions, at)
            draw = NEW_TUPLE(RandomKey, (identity.key, identity.run, queue.end))
            return self._record(self._learned.decide(actions, draw), at)

    def _decide_with_id(self, known: CallersId, actions: Any, at: int) -> Decision:
        """Choose with the random numbers of an id of the caller."""
        queue, ids = self._queue, self._identity.ids
        decision = self._learned.decide(actions, known.draw)._replace(round=queue.end)
        decision._id, marks = known.id, None
        if decision._proposal is not None:
            marks = mark_proposals(known.digests[:1], decision._proposal.take(np.newaxis))
        ids.add(known.run, known.digests[:1], np.array([queue.end]), self._learned.update_count, marks)
        self._record(decision, at)
        ids.forget(queue.base)
        return decision

    def _record(self, decision: Decision, at: int) -> Decision:
        """Count a decision of this agent and add it to the queue; return it."""
        decision._by = self._identity.id_prefix
        if decision._uncached:
            self._learned.cache_offered(decision)
        index = self._learned.statistics.record_decision(decision)
        self._add(index, decision if self._keeps_rows else self._policy.get_played(decision), at)
        return decision

    def _identify(self, id_: Any) -> CallersId:
        """Return what follows from an id of the caller, or raise."""
        known = CallersId.of(self.seed, self._identity.id_prefix, id_)
        self._identity.ids.check_open(known.run)
        if self._identity.ids.find_one(int(known.digests[0])) >= 0:
            template = "the id is {id!r}, which this agent has already decided; an id is decided once"
            raise InvalidActions(ErrorCode.CONFLICT, template, id=known.id)
        return known

    def _add(self, index: int, played: Any, at: int) -> int:
        """Add a decision to the queue; return its round."""
        if self._observed_costs is not None and self._queue.is_full:
            self._observed_costs.settle()  # before rows are left out
        if self._keeps_rows:
            return self._queue.add(played[0], None, at)
        return self._queue.add(index, played, at)

    def _get_played(self, index: int) -> Any:
        """Return what was played in a round whose outcome is pending."""
        queue = self._queue
        if not self._keeps_rows:
            return queue.played[index]
        row = queue.rows[index - queue.base]  # written once
        return NEW_TUPLE(PlayedAction, (row, int(row.item(0)), 1.0, None))

    def learn(
        self,
        decision: Decision | int | str,
        reward: Any = ABSENT,
        cost: Any = ABSENT,
        *,
        now: Any = None,
        **signals: Any,
    ) -> None:
        """Learn an outcome of a decision, all signals at once or each when it arrives; each counts once.

        Args:
            decision: The decision, its id or its round.
            reward: The reward.
            cost: The cost, or costs in the order of the limits or by name.
            now: When the outcome arrived, if there are windows and the clock is not to be used.
            **signals: Signals by name, instead of `reward` and `cost`.

        Raises:
            InvalidOutcome: The decision is unknown, a value is invalid, already known or too late. Nothing is learned
                then, except the signals that arrived in time.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}}
            >>> problem = sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals)
            >>> agent = sw.Agent(problem, seed=1)
            >>> agent.learn(agent.decide().id, click=True, opt_out=False)
            >>> agent.pending_count
            0
        """
        with self._lock:
            queue = self._queue
            index = self._identity.find_round(decision, queue.end)
            values = None
            if now is None and not queue.windows and queue.is_next(index):
                values = self._encode_complete(reward, cost, signals)
            if values is None:
                self._learn_parts(decision, index, reward, cost, now, signals)
                return
            played = self._get_played(index)
            if isinstance(decision, Decision):
                check_action(decision, played)
            self._learned.learn_row(index, played, values)  # first: a policy of one's own may raise
            queue.learn_whole(index, values)
            costs = self._observed_costs
            if costs is not None and costs.observe_whole(index, values):
                costs.record_alerts(self._policy, self._learned.statistics)
            if self._learned.statistics.changed:
                self._begin_tests_anew()
            if queue.buffered_count or self._identity.rounds_by_id:
                self._learn_due()

    def _encode_complete(self, reward: Any, cost: Any, signals: Any) -> Any:
        """Return the values of a complete outcome; None where it is partial or needs the slower checks."""
        ours = self._policy
        if signals:
            is_alone = reward is ABSENT and cost is ABSENT and len(signals) == len(self._queue.signals)
            return ours.encode_outcome(signals) if is_alone else None
        if reward is ABSENT or (cost is ABSENT and len(self._queue.names) > 1):
            return None
        try:
            return ours.values(reward, None if cost is ABSENT else cost)
        except InvalidOutcome:
            self._learned.statistics.refused += 1
            raise

    def _learn_parts(self, decision: Any, index: int, reward: Any, cost: Any, now: Any, signals: Any) -> None:
        """Learn an outcome that may be partial, late, or not next."""
        queue = self._queue
        try:
            values, given = parse_values(self._policy, reward, cost, signals)
        except InvalidOutcome:
            self._learned.statistics.refused += 1
            raise
        if queue.windows or now is not None:
            self._advance_time(now)
        late = [k for k in given if queue.is_late(index, k)]
        if late:  # what came in time is taken
            given = [k for k in given if k not in late and queue.is_missing(index, k)]
        if given or not late:
            check_missing(queue, decision, index, given, self._get_played)
            self._policy.check_outcome(self._learned.state, self._get_played(index), values)
            queue.report(index, given, values)
            self._observe_costs(index, given)
            self._learn_due()
        if late:
            reject_late(queue, self._windows, index, late)

    def _observe_costs(self, index: int, signals: Iterable[int]) -> None:
        """Give costs that were just reported or dropped to the sequential tests, which do not wait."""
        if self._observed_costs is not None and self._observed_costs.observe(index, signals):
            self._observed_costs.record_alerts(self._policy, self._learned.statistics)

    def _check_observed_costs(self) -> None:
        """Run the sequential tests on costs that were reported or dropped in bulk."""
        if self._observed_costs is not None and self._observed_costs.check():
            self._observed_costs.record_alerts(self._policy, self._learned.statistics)

    def _begin_tests_anew(self) -> None:
        """Let the tests of costs begin anew where a change was found."""
        if self._observed_costs is not None:
            self._observed_costs.begin_anew_after_changes(self._policy, self._learned.statistics)

    def _learn_due(self) -> None:
        """Learn the buffered outcomes whose turn has come, in the order of the decisions."""
        queue, identity = self._queue, self._identity
        if queue.in_order and self._keeps_rows and queue.buffered_count > FEW_DUE:
            indices, taken = queue.take_due()
            self._learned.learn_rows(indices, queue.rows[indices - queue.base], taken)
        for index, group in queue.iter_due():
            self._learned.learn_row(index, self._get_played(index), queue.select(index, group))
        if self._learned.statistics.changed:
            self._begin_tests_anew()
        if identity.rounds_by_id:
            identity.forget_completed(queue.is_pending, queue.pending_count + queue.buffered_count)

    def _advance_time(self, now: Any) -> int:
        """Close the windows that have ended; return the time as the queue counts it."""
        at = round(parse_timestamp(self.clock() if now is None else now) * MICROSECONDS)
        if self._queue.windows:
            closed = self._queue.advance(at)
            if self._observed_costs is not None and closed:
                for signal, indices in closed:
                    self._observed_costs.observe_rows(indices, signal)
                self._check_observed_costs()
            self._learn_due()
        return at

    def pending_summary(self) -> Pending:
        """Return, for each signal, how many outcomes are missing and buffered, since which decision, and why.

        Returns:
            One line for each signal; `print` shows a table, `to_dict` is for JSON.
        """
        with self._lock:
            return summarize_pending(self._queue, self._identity.id_at)

    def expire_pending(self, now: Any = None) -> int:
        """Close the windows that have ended. Every call that knows the time does so too.

        Args:
            now: The time, if the clock is not to be used.

        Returns:
            The number of decisions that are complete because of it.

        Raises:
            InvalidOutcome: `now` is not a time.
        """
        with self._lock:
            before = self.pending_count
            self._advance_time(now)
            return before - self.pending_count

    def drop_pending(self, before_round: int) -> int:
        """Give up the missing outcomes of all rounds below `before_round`; outcomes buffered behind them are learned.

        The bounds stay valid only if neither the outcome nor later ones decide whether it is given up: go by age.

        Args:
            before_round: The first round that is kept.

        Returns:
            The number of decisions that are given up.

        Raises:
            InvalidOutcome: `before_round` is not a round, or the agent has windows, which `expire_pending` closes.
        """
        is_round = isinstance(before_round, int | np.integer) and before_round is not True
        if not is_round or not 0 <= before_round <= self.round:
            rule = f"a round from 0 to {self.round}, the next round"
            raise InvalidOutcome.must_be(ErrorCode.OUT_OF_RANGE, "before_round", before_round, rule)
        if self._queue.windows:
            raise InvalidOutcome(
                ErrorCode.UNSUPPORTED,
                "this agent has windows, so it cannot drop them; dropping keeps only reported outcomes and biases the "
                "estimates, so use expire_pending, which closes windows by age",
            )
        count = 0
        with self._lock:
            for index, signals in self._queue.drop_missing(int(before_round)):
                self._observe_costs(index, signals)
                count += 1
            self._learn_due()
        return count

    def cancel(self, decision: Decision | int | str) -> None:
        """Cancel a decision that was not carried out: nothing is learned from it, and reports do not count it.

        A message that could not be sent has no outcome; if it stayed pending, it would count as unanswered. This is
        valid if the reason for not carrying it out does not depend on what its outcome would have been.

        Args:
            decision: The decision, its id or its round.

        Raises:
            InvalidOutcome: The decision is unknown, already complete, or part of its outcome is known.
        """
        with self._lock:
            queue = self._queue
            index = self._identity.find_round(decision, queue.end)
            if not queue.is_open(index):
                template = (
                    "the decision of round {round} cannot be cancelled; its outcome is partly known, or it is already "
                    "closed"
                )
                raise InvalidOutcome(ErrorCode.OUTCOME_ALREADY_KNOWN, template, round=index)
            played = self._get_played(index)
            queue.drop(index)
            queue.played.pop(index, None)
            self._observe_costs(index, range(len(queue.names)))
            if index not in self._identity.registered_rounds:
                known = decision if isinstance(decision, Decision) else played
                self._learned.statistics.cancel_play(index, known._position)
            self._learn_due()

    def _require_base_policy(self, what: str) -> BasePolicy:
        """Return the policy, or raise if it is not one of stagewise."""
        if isinstance(self._policy, PolicyAdapter):
            raise reject_adapter(what)
        return self._policy
