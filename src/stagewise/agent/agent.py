"""The agent: a policy with its memory, its seed and the decisions whose outcomes are pending."""

import time
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from stagewise.agent.agent_file import SavedAgent, check_same_policy, decode_agent, encode_agent
from stagewise.agent.agent_file_pending import PendingState
from stagewise.agent.agent_identity import Identity
from stagewise.agent.agent_report import Report, build_report
from stagewise.agent.delayed_feedback import DelayedFeedbackAgent
from stagewise.agent.duplicate_logs import check_not_learned, compute_fingerprint, remember_log
from stagewise.agent.health import acknowledge, check_health
from stagewise.agent.health_findings import Health
from stagewise.agent.log_arrays import parse_log
from stagewise.agent.log_frames import ColumnNames, read_rows
from stagewise.agent.observed_costs import add_observed_health
from stagewise.agent.ownership import Ownership
from stagewise.agent.registered import check_unregistered, parse_decision
from stagewise.agent.snapshot import Snapshot
from stagewise.files.paths import parse_path, read_file
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.policy import PlayedAction, Policy, State
from stagewise.policies.policy_encoding import check_kind
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_bool
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.records.decision import Decision


class Agent(DelayedFeedbackAgent):
    """Decide and learn with a policy or a problem, one user at a time; save and load.

    Outcomes may arrive late, in any order or never, as long as that does not depend on their values. They are learned
    in the order of the decisions: an outcome is buffered until every earlier decision has its outcome or is given up.
    Threads may share an agent; calls are serialized.

    Args:
        policy: A `Problem`, a policy of stagewise, or any object with start, decide and learn.
        seed: The seed of the random numbers. Ids and random numbers derive from `seed` and `name`.
        order: "decision" learns outcomes in the order of the decisions. "arrival" learns them at once, which is valid
            only if nothing that is offered depends on outcomes that exist and are not learned yet
            (docs/theory/order.md).
        name: Distinguishes agents of one seed; two agents that share both also share ids and random numbers.
        windows: By signal, how long to wait for it and what a missing value counts as.
        clock: Returns the time where a call gives no `now`.

    Attributes:
        policy: The policy.
        round: The number of decisions so far.
        pending_count: The number of decisions without a complete outcome.
        buffered_count: The number of decisions with outcomes that are known and not learned yet.

    Raises:
        InvalidProblem: An argument is invalid, or `windows` are combined with `order="arrival"`.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
        >>> agent = sw.Agent(policy, seed=1)
        >>> decision = agent.decide(sw.Arms(2))
        >>> agent.learn(decision.id, reward=0.7)
        >>> agent.round, agent.pending_count, agent.buffered_count
        (1, 1, 1)
        >>> agent.learn(decision.id, cost=0.1)
        >>> agent.round, agent.pending_count, agent.buffered_count
        (1, 0, 0)
    """

    def learn_log(self, features: Any, rewards: Any, costs: Any = None, *, again: bool = False) -> None:
        """Learn from the logged data of any earlier policy, given as arrays.

        The bounds stay valid if each logged action was chosen without knowledge of its own or later outcomes. A log is
        one batch, in any order of its rows, and is learned at once, also while decisions are pending: then nothing
        offered so far may depend on its outcomes, nor its actions on the pending outcomes.

        Args:
            features: The features of the played actions (n, d), or arms (n,).
            rewards: The rewards (n,).
            costs: The costs (n,) or (n, m), a mapping of columns by name, or a data frame whose columns are named like
                the limits. True and False count as 1 and 0.
            again: Learn the log even if it equals or overlaps one that is already learned (docs/how-to/bring-a-log.md).

        Raises:
            InvalidOutcome: A value is invalid, or all or part of the log is already learned. Nothing is learned then.
            InvalidActions: A logged action is invalid. Nothing is learned then.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.5)
            >>> agent = sw.Agent(policy)
            >>> agent.learn_log([0, 1, 1], rewards=[0.0, 1.0, 1.0], costs=[0.0, 0.0, 1.0])
        """
        policy = self._require_base_policy("a log is")
        self._learn_rows(policy, *parse_log(policy, features, rewards, costs), again)

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
        """Learn from logged data in a frame of pandas, polars or Arrow, a mapping of columns, or a file.

        All rows are learned, or none. See `learn_log` for when the bounds stay valid. For a problem, every column has
        the name that the problem declares, and the action's is "action", unless a mapping says otherwise.

        Args:
            frame: The frame, a mapping of columns, or the path of a .csv, .parquet or .jsonl file.
            reward: The column of the reward.
            action: The column of the played arm: an index from 0 or, with `names`, a name.
            costs: A mapping from limits to columns; by default the columns are named like the limits. True and False
                count as 1 and 0.
            context: For actions with features, the columns of the features in order; for a problem, a mapping from its
                context names to columns.
            names: The names of all arms in order, if the action's column holds names.
            again: Learn the log even if it equals or overlaps one that is already learned.

        Raises:
            InvalidOutcome: A value is invalid or missing, or all or part of the log is already learned.
            InvalidActions: An action is unknown or its column is missing.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold={"opt_out": 0.02})
            >>> agent = sw.Agent(policy)
            >>> sent = {"opted": [False, True], "template": ["nothing", "offer"], "click": [False, True]}
            >>> columns = {"names": ["nothing", "offer"], "costs": {"opt_out": "opted"}}
            >>> agent.learn_frame(sent, action="template", reward="click", **columns)
            >>> try:
            ...     agent.learn_frame(sent, action="templte", reward="click", **columns)
            ... except sw.InvalidActions as error:
            ...     print(error.code)
            column_missing
        """
        policy = self._require_base_policy("a log is")
        rows = read_rows(policy, frame, ColumnNames(reward, action, costs, context, names))
        if rows is not None:
            self._learn_rows(policy, rows.actions, rows.values, again)

    def _learn_rows(self, policy: BasePolicy, actions: Any, values: Any, again: bool) -> None:
        """Learn a log that was parsed for this policy; adding an action replaces the policy."""
        fingerprint = compute_fingerprint(actions, values)
        with self._lock:
            if self._base_policy is not policy:
                raise InvalidOutcome(
                    ErrorCode.CONFLICT,
                    "an action was added while this log was read; no row was learned, so give the log again",
                )
            check_not_learned(self._statistics, fingerprint, again)
            self._state, self._update_count = policy.learn_log(self._state, actions, values), self._update_count + 1
            self._check_drift(at_once=True)
            remember_log(self._statistics, fingerprint, again)

    def add_action(self, name: str) -> None:
        """Add an action to the problem; what was learned of the others and what is pending stays.

        Args:
            name: The name of the new action.

        Raises:
            InvalidProblem: The agent has no problem, or the name is invalid or taken.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0)}}
            >>> agent = sw.Agent(sw.Problem(actions=["nothing", "offer"], safe="nothing", **signals))
            >>> agent.add_action("sale")
            >>> list(agent.decide().probabilities)
            ['nothing', 'offer', 'sale']
        """
        with self._lock:
            policy: Any = self.policy
            if self._base_policy is None or self._base_policy.problem is None:
                raise InvalidProblem(
                    ErrorCode.UNSUPPORTED,
                    "this agent has a policy without a problem; only a problem's actions have names",
                )
            extended = policy.problem.with_action(name).policy()
            self._state, self.policy = extended.grow_state(policy, self._state), extended
            self._update_count += 1
            self._statistics.reset_tracks()
            self._bind_policy()

    def health(self) -> Health:
        """Compare every declared assumption with the data; `print` shows a table.

        A finding whose verdict is "contradicted" stops the agent: every decision is the safe action until a person
        acknowledges it. A reward's finding, and every finding with `check_assumptions=False`, stops nothing.

        Returns:
            The findings, each with `name`, `check`, `signal`, `verdict`, `message` and `details`.

        Example:
            >>> import stagewise as sw
            >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.001)
            >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"opt_out": 0.02}, radius="kl"))
            >>> agent.learn_log([0] * 400, [0.0] * 400, [1.0, 0.0] * 200)
            >>> finding = agent.health()["safe cost of opt_out"]
            >>> finding.check.value, finding.signal, finding.verdict.value, round(finding.details["mean"], 3)
            ('safe_cost', 'opt_out', 'contradicted', 0.5)
            >>> agent.decide(sw.Arms(2)).reason.value
            'assumption_contradicted'
        """
        with self._lock:
            return add_observed_health(
                self.policy, check_health(self.policy, self._state, self._statistics), self._observed_costs
            )

    def acknowledge(self, name: str, note: str = "") -> None:
        """Acknowledge a contradiction, so that the agent goes on.

        The bounds depend on the declared values, and after this on your word. If a declared value is wrong, start a new
        agent with true values and give it the log instead.

        Args:
            name: The name of the finding in `health()`.
            note: Who decided this and why; `health()` shows it.

        Raises:
            InvalidProblem: There is no open alert of this name, or the note is not text.

        Example:
            >>> import stagewise as sw
            >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.001)
            >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"opt_out": 0.02}, radius="kl"))
            >>> agent.learn_log([0] * 400, [0.0] * 400, [1.0, 0.0] * 200)
            >>> agent.acknowledge("safe cost of opt_out", "Ana: a broken feed on Monday")
            >>> agent.health().ok
            True
        """
        if self._base_policy is None:
            raise InvalidProblem(
                ErrorCode.UNSUPPORTED,
                "this policy has only start, decide and learn, so it raises no alerts to acknowledge",
            )
        with self._lock:
            acknowledge(self._base_policy, self._state, self._statistics, name, note)

    def report(self, names: Any = None) -> Report:
        """Summarize traffic, rewards against the safe action, limits and actions; `print` shows a table.

        Args:
            names: The names of the listed actions, in order.

        Returns:
            The report; `to_dict` is for JSON, `sw.plot_report` draws it.

        Raises:
            InvalidProblem: `names` does not list every action once.

        Example:
            >>> import stagewise as sw
            >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
            >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.5), seed=1)
            >>> for _ in range(10):
            ...     agent.learn(agent.decide(sw.Arms(2)), reward=0.6, cost=0.1)
            >>> report = agent.report(names=["nothing", "offer"])
            >>> report.rounds, [action.name for action in report.actions], report.limits[0].slack >= 0.0
            (10, ['offer', 'nothing'], True)
        """
        with self._lock:
            labels = getattr(self.policy, "names", None) if names is None else names
            return build_report(self.policy, self._state, self._statistics, labels, self._observed_costs)

    def register(self, decision: Decision | Mapping[str, Any], now: Any = None) -> int:
        """Register a decision of a `Replica`; its outcomes are then learned by its id.

        Register a decision before its outcome exists, for example when it is logged: decisions count in the order in
        which they are registered (docs/theory/order.md).

        Args:
            decision: The decision, or the result of its `to_dict()`.
            now: The time, if the clock is not to be used.

        Returns:
            The round of the decision in this agent's order.

        Raises:
            InvalidOutcome: No replica of this agent made the decision, or it is already registered.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> agent = sw.Agent(policy, seed=1)
            >>> decision = sw.Replica(agent.snapshot(), name="pod-3").decide(sw.Arms(2))
            >>> agent.register(decision.to_dict())
            0
        """
        parsed, policy = parse_decision(decision), self._require_base_policy("replicas are")
        with self._lock:
            check_unregistered(parsed, self._identity, self._registered)
            played = policy.check_played(
                PlayedAction(parsed.action, parsed.action_index, parsed.step_size, parsed._safe)
            )
            if parsed._uncached:
                policy.cache_offered(self._state, parsed)  # raises before anything changes
            time_ = self._advance_time(now) if self._deadlines is not None or now is not None else 0.0
            if parsed._uncached:
                self._state, self._update_count = policy.cache_offered(self._state, parsed), self._update_count + 1
            round_, self._fast_path = self.round, False
            self._registered.add(parsed.id, round_)
            self._queue.open[round_] = PlayedAction(played.action) if parsed._uncached else played
            if self._deadlines is not None:
                self._deadlines.date(round_, time_)
            if self._observed_costs is not None:
                self._observed_costs.add(round_, played.ray, self._queue)
            self.round = round_ + 1
            return round_

    def snapshot(self) -> Snapshot:
        """Return the policy, its memory and the alerts as an immutable value, for a `Replica`.

        Returns:
            The snapshot.

        Raises:
            InvalidProblem: The policy is not one of stagewise.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> sw.Agent(policy, seed=1).snapshot().version
            0
        """
        with self._lock:
            policy: Any = self._base_policy
            check_kind(policy)
            alerts, acknowledged = dict(self._statistics.alerts), dict(self._statistics.acknowledged)
            memory = self._state.memory.tobytes()
            return Snapshot(copy(policy), memory, self._update_count, self.seed, self.name, alerts, acknowledged)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the policy, its memory and everything pending to a JSON file, atomically.

        Args:
            path: A new path, or a file that this agent loaded or saved last; a file that another process changed since
                is not replaced.
            overwrite: Replace any regular file.

        Raises:
            InvalidFile: The file exists and is not this agent's, was changed, or cannot be written.
            InvalidProblem: The policy cannot be saved.

        Example:
            >>> import stagewise as sw, tempfile, pathlib
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.json"
            >>> sw.Agent(policy, seed=1).save(path)
            >>> sw.Agent.load(path).round
            0
        """
        target, replaces = parse_path(path), check_bool(overwrite, "overwrite")
        check_kind(self.policy)
        with self._save_lock:
            with self._lock:
                saved = self._build_saved_agent()
            self._ownership.write(target, encode_agent(saved, self._ownership.stamp()), saved.round, replaces)

    def _build_saved_agent(self) -> SavedAgent:
        """Return a copy of the agent's state that later calls do not change."""
        policy: Any = self._base_policy
        deadlines = None if self._deadlines is None else self._deadlines.clone()
        costs = None if self._observed_costs is None else self._observed_costs.clone()
        pending = PendingState(self._queue.clone(), deadlines, self._registered.clone(), costs)
        return SavedAgent(
            policy, self._state.memory.copy(), self.seed, self.round, self.order, pending, self._ownership.generation,
            self.name, self._identity.former_prefixes, self._update_count, self._statistics.clone(),
        )  # fmt: skip

    @classmethod
    def load(
        cls,
        path: str | Path,
        policy: Policy | Problem | None = None,
        *,
        name: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Agent":
        """Return the agent saved at `path`; it continues exactly, to the bit.

        If several processes load one file, the first to save keeps it and the others are rejected. After a crash,
        decisions may have been made that the file does not contain: a new `name` gives new ids and random numbers, and
        pending decisions keep their ids.

        Args:
            path: The file.
            policy: The expected policy or problem; a file of another one is rejected.
            name: A new name for the agent.
            clock: Returns the time where a call gives no `now`.

        Returns:
            The agent.

        Raises:
            InvalidFile: The file is missing, corrupt, of another version or of another policy.

        Example:
            >>> import stagewise as sw, tempfile, pathlib
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.json"
            >>> sw.Agent(policy, seed=1).save(path)
            >>> sw.Agent.load(path, policy).seed
            1
        """
        source = parse_path(path)
        content = read_file(source)
        saved = decode_agent(source, content)
        if policy is not None:
            check_same_policy(source, saved.policy, policy.policy() if isinstance(policy, Problem) else policy)
        agent = cls(saved.policy, saved.seed, saved.order, name=saved.name, clock=clock)
        agent.round, agent._update_count = saved.round, saved.learned
        agent._identity = Identity(saved.seed, saved.name, saved.former_prefixes)
        agent._identity = agent._identity if name is None else agent._identity.with_name(name, saved.round)
        agent._state = State(saved.memory)
        agent._queue, agent._deadlines, agent._registered, agent._observed_costs = saved.pending
        agent._fast_path = agent._deadlines is None and not agent._registered.seen_rounds
        agent._ownership, agent._statistics = Ownership(saved.generation), saved.statistics
        agent._ownership.learn(source, content, saved.round)
        return agent
