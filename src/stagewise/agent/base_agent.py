"""The round-by-round part of an agent: decide, and learn each outcome in the order of the decisions."""

import time
from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from threading import Lock
from typing import Any

import numpy as np

from stagewise.agent.action_restriction import restrict_actions
from stagewise.agent.agent_identity import Identity
from stagewise.agent.deadlines import build_deadlines
from stagewise.agent.guard import apply_guard, check_drift
from stagewise.agent.observed_costs import Values, build_observed_costs
from stagewise.agent.outcome_queue import ORDERS, Order, OutcomeQueue
from stagewise.agent.outcome_values import ABSENT, check_action
from stagewise.agent.ownership import Ownership
from stagewise.agent.partial_outcomes import copy_outcome, ignore_signals, parse_outcome, select_on_time
from stagewise.agent.registered import RegisteredDecisions
from stagewise.agent.statistics import Statistics
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.policy import PlayedAction, Policy, check_policy_protocol
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_choice, check_seed
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.window import OutcomeWindow, check_clock, parse_timestamp
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey

NEW_TUPLE = tuple.__new__  # of named tuples: their own takes twice as long, and every round makes two
UNSAVED_FIELDS = (
    "_base_policy",
    "_choose",
    "_learn_in_place",
    "_values",
    "_encode_outcome",
    "_cost_signals",
    "_has_costs",
    "_lock",
    "_save_lock",
)


class BaseAgent:
    """A policy with its memory and its pending decisions."""

    def __init__(
        self,
        policy: Policy | Problem,
        seed: int | np.random.Generator = 0,
        order: Order = "decision",
        *,
        name: str = "",
        windows: Mapping[str, OutcomeWindow] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(policy, Problem):
            windows = {**policy.windows, **({} if windows is None else windows)}
            policy = policy.policy()
        check_policy_protocol(policy)
        self.policy: Policy = policy
        self.order = check_choice(order, ORDERS, "order")
        self.seed = check_seed(seed.integers(2**63) if isinstance(seed, np.random.Generator) else seed)
        self.clock = check_clock(clock)
        self.round = 0
        self._identity = Identity(self.seed, name)
        self._state: Any = policy.start()
        self._update_count = 0  # the number of updates of the memory
        ours = policy if isinstance(policy, BasePolicy) else None
        names = ("outcome",) if ours is None else ours.signal_names
        self._queue = OutcomeQueue(names, ours is not None and ours.separate_models, self.order == "arrival")
        self._deadlines = build_deadlines(ours, windows)
        if self._deadlines is not None and self.order == "arrival":
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "order is 'arrival' and there are windows; leave order out, since outcomes learned on "
                "arrival would precede missing ones and bias the estimates",
            )
        self._registered = RegisteredDecisions()
        self._fast_path = self._deadlines is None  # no windows and no registered decisions
        self._ownership = Ownership()
        self._statistics = Statistics()
        self._observed_costs = build_observed_costs(ours)
        self._prepare()

    def _prepare(self) -> None:
        """Set the fields that are not saved: the policy's methods and the locks; `_save_lock` is acquired first."""
        self._lock, self._save_lock = Lock(), Lock()
        self._bind_policy()

    def _bind_policy(self) -> None:
        """Set the fields that follow from the policy."""
        policy = self.policy
        self._base_policy = ours = policy if isinstance(policy, BasePolicy) else None  # None: a policy of your own
        can_choose = ours is not None and type(ours).decide is BasePolicy.decide
        self._choose: Callable[..., Decision] = getattr(policy, "choose" if can_choose else "decide")
        # in place: the agent's own state needs no checks
        self._learn_in_place: Callable[..., Any] = policy.learn if ours is None else ours.learn_in_place
        self._values: Callable[[Any, Any], Any] = copy_outcome if ours is None else ours.values
        self._encode_outcome: Callable[[Any], Any] = ignore_signals if ours is None else ours.encode_outcome
        self._cost_signals = range(1, 1 if ours is None else 1 + len(ours.thresholds.names))
        self._has_costs = len(self._cost_signals) > 0  # an outcome is incomplete without costs

    def __repr__(self) -> str:
        what = f"{len(names)} actions" if (names := getattr(self.policy, "names", None)) else type(self.policy).__name__
        return f"<Agent of {what}, round {self.round}, {self.pending_count} pending, {self.buffered_count} buffered>"

    def __getstate__(self) -> dict[str, Any]:
        """Return an independent copy of the fields, for a copy or a pickle."""
        with self._lock:
            fields = {name: value for name, value in vars(self).items() if name not in UNSAVED_FIELDS}
            fields["policy"] = copy(self.policy)  # a policy caches some of its numbers
            fields["_state"] = deepcopy(self._state)
            fields |= {name: value.clone() for name, value in fields.items() if hasattr(value, "clone")}
            return fields

    def __setstate__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields)
        self._prepare()

    @property
    def name(self) -> str:
        """The name, which distinguishes its ids and random numbers from those of other agents of its seed."""
        return self._identity.name

    @property
    def state(self) -> Any:
        """A copy of the policy's memory."""
        with self._lock:
            return deepcopy(self._state)

    @property
    def pending_count(self) -> int:
        """The number of decisions without a complete outcome; `pending` lists them by signal."""
        return len(self._queue.open) + self._queue.missing_count

    @property
    def buffered_count(self) -> int:
        """The number of decisions with outcomes that are known and not learned yet; `pending` says why."""
        return self._queue.buffered_count

    def decide(self, actions: Any = None, *, only: Any = None, now: Any = None) -> Decision:
        """Choose among the actions.

        Args:
            actions: An action set, a table of features, or for a problem the context of a user.
            only: The actions that are offered in this call.
            now: The time, as `time.time` returns it, if the clock is not to be used.

        Returns:
            The decision: the action, its probabilities, its bounds, and the reason if the safe action is played.

        Raises:
            InvalidActions: The actions or the context do not fit the policy.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0)}}
            >>> problem = sw.Problem(actions=["nothing", "offer"], safe="nothing", **signals)
            >>> sw.Agent(problem, seed=1).decide().name in ("nothing", "offer")
            True
        """
        if only is not None:
            actions = restrict_actions(self._base_policy, actions, only)
        with self._lock:
            who, deadlines, round_ = self._identity, self._deadlines, self.round
            if deadlines is not None or now is not None:
                now = self._advance_time(now)
            draw = NEW_TUPLE(RandomKey, (who.key, who.run, round_))
            decision, statistics = self._choose(self._state, actions, draw), self._statistics
            ours, cause = self._base_policy, decision.reason_details
            if ours is not None and (statistics.alerts or (cause is not None and cause.contradicts)):
                decision = self._apply_guard(ours, decision, actions, draw)
            elif cause is not None:
                statistics.safe_only_rounds += 1
            index, plays = decision.action_index, statistics.plays
            plays[index] = plays.get(index, 0) + 1
            if decision._round_result is not None:
                statistics.recent.append(decision)
            decision._by = who.id_prefix
            if ours is None:
                self._queue.open[round_] = decision
            elif decision._uncached:
                self._queue.open[round_] = PlayedAction.from_decision(decision)
                self._state = ours.cache_offered(self._state, decision)
                self._update_count += 1
            else:
                self._queue.open[round_] = NEW_TUPLE(
                    PlayedAction, (decision[0], index, decision[2], decision._safe)
                )  # as `by`
            if deadlines is not None:
                deadlines.date(round_, now)
            if self._observed_costs is not None:
                self._observed_costs.add(round_, index, self._queue)
            self.round = round_ + 1
            return decision

    def _apply_guard(self, ours: BasePolicy, decision: Decision, actions: Any, draw: RandomKey) -> Decision:
        """Return the decision, or the safe action while an alert is open."""
        state = self._state
        decision = apply_guard(
            ours, state, self._statistics, decision, actions, lambda policy: policy.choose(state, actions, draw)
        )
        self._statistics.safe_only_rounds += decision.reason_details is not None
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
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0)}}
            >>> problem = sw.Problem(actions=["nothing", "offer"], safe="nothing", **signals)
            >>> agent = sw.Agent(problem, seed=1)
            >>> agent.learn(agent.decide().id, click=True, opt_out=False)
            >>> agent.pending_count
            0
        """
        with self._lock:
            outcome_queue, is_decision = self._queue, isinstance(decision, Decision)
            if is_decision and self._fast_path and decision._by == self._identity.id_prefix:  # type: ignore[union-attr]
                round_: int = decision.round  # type: ignore[union-attr]
            else:
                round_ = self._identity.find_round(decision, self._registered, self.round)
            played, values = outcome_queue.open.get(round_), None
            if played is not None and now is None and self._fast_path:
                if signals:
                    alone = reward is ABSENT and cost is ABSENT and len(signals) == len(outcome_queue.names)
                    values = self._encode_outcome(signals) if alone else None
                elif reward is not ABSENT and not (cost is ABSENT and self._has_costs):
                    try:
                        values = self._values(reward, None if cost is ABSENT else cost)
                    except InvalidOutcome:
                        self._statistics.refused += 1
                        raise
            if values is None:
                self._learn_parts(decision, round_, reward, cost, now, signals)
                return
            if is_decision and decision.action is not played.action:  # type: ignore[union-attr]
                check_action(decision, played)
            if self._observed_costs is not None:
                self._observe_costs(round_, values.tolist(), self._cost_signals)
            if round_ == outcome_queue.oldest or outcome_queue.at_once:
                self._state = self._learn_in_place(self._state, played, values)
                self._update_count += 1
                outcome_queue.oldest = round_ + 1
                del outcome_queue.open[round_]
                self._statistics.updates_until_check -= 1
                if self._statistics.updates_until_check <= 0:
                    self._check_drift()
            else:
                self._buffer(round_, played, values)
            if outcome_queue.rows:
                self._learn_due()

    def _learn_parts(self, decision: Any, round_: int, reward: Any, cost: Any, now: Any, signals: Any) -> None:
        """Learn an outcome that may be partial, late, or of a registered decision."""
        outcome_queue, deadlines = self._queue, self._deadlines
        if round_ >= self.round:
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_DECISION, "the outcome is for round {round}; this agent did not make it", round=round_
            )
        try:
            values, given = parse_outcome(self._base_policy, outcome_queue.names, reward, cost, signals)
        except InvalidOutcome:
            self._statistics.refused += 1
            raise
        if deadlines is not None or now is not None:
            self._advance_time(now)
        parts = select_on_time(outcome_queue, deadlines, decision, round_, given)
        if self._base_policy is None:
            self._buffer(round_, parts.played, values)
        else:
            outcome_queue.put(round_, values, parts.given)
            self._observe_costs(round_, values, parts.given)
        self._learn_due()
        if parts.late and deadlines is not None:  # what came in time is taken
            deadlines.reject_late(parts.late, round_, outcome_queue.names)

    def _buffer(self, round_: int, played: Any, values: Any) -> None:
        """Buffer a complete outcome."""
        if self._base_policy is None:
            self._learn_in_place(self._state, played, values)  # the result is dropped: only to raise errors now
            self._queue.put_whole(round_, values)
        else:
            self._queue.put(round_, values.tolist(), range(len(values)))

    def _observe_costs(self, round_: int, values: Values, given: Iterable[int]) -> None:
        """Give reported costs to the sequential tests at once; NaN values are left out."""
        if self._observed_costs is not None and self._observed_costs.observe(round_, values, given):
            self._observed_costs.record_alerts(self.policy, self._statistics)

    def _learn_due(self) -> None:
        """Learn the buffered outcomes whose turn has come, in the order of the decisions."""
        for played, values in self._queue.iter_due(self.round):
            self._state = self._learn_in_place(self._state, played, values)
            self._update_count += 1
            self._statistics.updates_until_check -= 1
            if self._statistics.updates_until_check <= 0:
                self._check_drift()
        if self._registered.rounds_by_id:
            self._registered.discard_completed(self._queue.played, self.pending_count + self.buffered_count)

    def _check_drift(self, at_once: bool = False) -> None:
        """Run the drift tests that are due."""
        memory: Any = getattr(self._state, "memory", None)  # a policy of your own may have none and is not tested
        check_drift(self._base_policy, memory, self._statistics, at_once)

    def _advance_time(self, now: Any) -> float:
        """Close the windows that have ended; return the time."""
        time_ = parse_timestamp(self.clock() if now is None else now)
        if self._deadlines is not None:
            for round_, window in self._deadlines.close_windows(time_, self.round):
                if self._queue.close(round_, window.signal, window.value):
                    self._observe_costs(round_, {window.signal: window.value}, (window.signal,))
            self._learn_due()
        return time_

    def _require_base_policy(self, what: str) -> BasePolicy:
        """Return the policy, or raise if it is not one of stagewise."""
        if self._base_policy is None:
            raise InvalidProblem(
                ErrorCode.UNSUPPORTED,
                "this policy has only start, decide and learn; {what} for policies of stagewise",
                what=what,
            )
        return self._base_policy
