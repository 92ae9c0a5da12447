"""The agent: a policy with its memory, its seed and the decisions whose outcomes are pending."""

import time
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from stagewise.agent.agent_statistics import check_not_learned, compute_fingerprint, remember_log
from stagewise.agent.base_agent import ORDERS
from stagewise.agent.frames import ColumnNames, LogRows, parse_log, read_rows
from stagewise.agent.health import acknowledge, add_observed_health, check_health
from stagewise.agent.health_findings import Health
from stagewise.agent.identity import Identity, check_name, parse_decision
from stagewise.agent.outcome_queue import BUFFERED, MISSING
from stagewise.agent.outcomes import encode_windows
from stagewise.agent.policy_adapter import PolicyAdapter
from stagewise.agent.replica import Snapshot
from stagewise.agent.report import Report, build_report, list_segment_names
from stagewise.agent.storage import (
    Ownership,
    check_same_policy,
    decode_file,
    decode_played,
    encode_file,
    encode_played,
    parse_count,
)
from stagewise.agent.table_agent import TableAgent
from stagewise.files.paths import format_error, parse_path, read_file
from stagewise.policies.policy import BasePolicy, PlayedAction, Policy
from stagewise.policies.problem import Problem
from stagewise.policies.saved_policies import check_kind, decode_value, encode_value
from stagewise.problem.checks import check_bool, check_choice, check_seed
from stagewise.problem.context import hash_segment
from stagewise.problem.errors import (
    ErrorCode,
    InvalidActions,
    InvalidFile,
    InvalidOutcome,
    InvalidProblem,
    StagewiseError,
)
from stagewise.problem.formatting import format_path
from stagewise.problem.timing import OutcomeWindow
from stagewise.records.decision import Decision


class Agent(TableAgent):
    """Decide and learn with a policy or a problem, one user or a table at a time; save and load.

    Outcomes may arrive late, in any order or never, as long as that does not depend on their values. They are learned
    in the order of the decisions: an outcome is buffered until every earlier decision has its outcome or is given up.
    Threads may share an agent; calls are serialized.

    Args:
        policy: A `Problem`, a policy of stagewise, or any object with start, decide and learn.
        seed: The seed of the random numbers. Ids and random numbers derive from `seed` and `name`.
        learning_order: "decision" learns outcomes in the order of the decisions. "arrival" learns them at once, which
            is valid only if nothing that is offered depends on outcomes that exist and are not learned yet
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
        InvalidProblem: An argument is invalid, or `windows` are combined with `learning_order="arrival"`.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
        >>> agent = sw.Agent(policy, seed=1)
        >>> decision = agent.decide(sw.ArmSet(2))
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
        self._learn_rows(policy, parse_log(policy, features, rewards, costs), again)

    def learn_log_frame(
        self,
        frame: Any,
        *,
        reward: Any = None,
        action: Any = None,
        costs: Any = None,
        context: Any = None,
        names: Any = None,
        again: bool = False,
    ) -> dict[int, InvalidActions]:
        """Learn from logged data in a frame of pandas, polars or Arrow, a mapping of columns, or a file.

        A row whose context is refused is left out, which does not depend on its outcome. Any other invalid value raises
        an error, and no row is learned. See `learn_log` for when the bounds stay valid. For a problem, every column has
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

        Returns:
            The errors of the rows that were left out, by row; each has a `code`.

        Raises:
            InvalidOutcome: A value is invalid or missing, or all or part of the log is already learned.
            InvalidActions: An action is unknown, a column is missing, or the context of every row is refused.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold={"opt_out": 0.02})
            >>> agent = sw.Agent(policy)
            >>> sent = {"opted": [False, True], "template": ["nothing", "offer"], "click": [False, True]}
            >>> columns = {"names": ["nothing", "offer"], "costs": {"opt_out": "opted"}}
            >>> agent.learn_log_frame(sent, action="template", reward="click", **columns)
            {}
            >>> try:
            ...     agent.learn_log_frame(sent, action="templte", reward="click", **columns)
            ... except sw.InvalidActions as error:
            ...     print(error.code)
            column_missing
        """
        policy = self._require_base_policy("a log is")
        rows = read_rows(policy, frame, ColumnNames(reward, action, costs, context, names))
        if rows is None:
            return {}
        self._learn_rows(policy, rows, again)
        return dict(rows.refused)

    def _learn_rows(self, policy: BasePolicy, rows: LogRows, again: bool) -> None:
        """Learn a log that was parsed for this policy; adding an action replaces the policy."""
        actions, values = rows.actions, rows.values
        fingerprint = compute_fingerprint(actions, values)
        with self._lock:
            if self._policy is not policy:
                text = "an action was added while this log was read; no row was learned, so give the log again"
                raise InvalidOutcome(ErrorCode.CONFLICT, text)
            check_not_learned(self._learned.statistics, fingerprint, again)
            self._learned.learn_log(actions, values)
            remember_log(self._learned.statistics, fingerprint, again)
            self._learned.statistics.count_context(rows.clipped, len(rows.refused))

    def add_action(self, name: str) -> None:
        """Add an action to the problem; what was learned of the others and what is pending stays.

        Args:
            name: The name of the new action.

        Raises:
            InvalidProblem: The agent has no problem, or the name is invalid or taken.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}}
            >>> agent = sw.Agent(sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals))
            >>> agent.add_action("sale")
            >>> list(agent.decide().probabilities)
            ['nothing', 'offer', 'sale']
        """
        with self._lock:
            if self._policy.problem is None:
                text = "this agent has a policy without a problem; only a problem's actions have names"
                raise InvalidProblem(ErrorCode.UNSUPPORTED, text)
            self._learned.extend(self._policy.problem.with_action(name).policy())
            self._bind_policy()

    def forget_costs(self, action: str, before: Any = None) -> None:
        """Forget what was learned of an action's costs before a time, so that it is held back and learned again.

        Only limits with a drift are concerned. The action keeps what epochs learned that began later; where none did,
        it goes back to its first share, and is learned from the next step of the grid on (docs/theory/drift.md).
        Outcomes of earlier decisions that are still to come are not learned either.

        Args:
            action: The action.
            before: The time of the first decision whose outcome counts, as `time.time` returns it; None: none of the
                decisions so far counts.

        Raises:
            InvalidProblem: There is no such action, or no limit has a drift.
            InvalidOutcome: `before` is not a time.

        Example:
            >>> import stagewise as sw
            >>> limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, drift="jumps")}
            >>> signals = {"reward": sw.Reward("click"), "limits": limits}
            >>> agent = sw.Agent(sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals))
            >>> agent.forget_costs("offer")
        """
        with self._lock:
            self._require_base_policy("costs are forgotten")
            self._learned.forget_costs(action, before, self._queue.pending_rows)

    def health(self) -> Health:
        """Compare every declared assumption with the data; `print` shows a table.

        A finding whose verdict is "contradicted" stops the agent: every decision is the safe action until a person
        acknowledges it. A reward's finding, and every finding with `check_assumptions=False`, stops nothing.

        Returns:
            The findings, each with `name`, `check`, `signal`, `verdict`, `message` and `details`.

        Example:
            >>> import stagewise as sw
            >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.001)
            >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"opt_out": 0.02}, interval="kl"))
            >>> agent.learn_log([0] * 400, [0.0] * 400, [1.0, 0.0] * 200)
            >>> finding = agent.health()["safe cost of opt_out"]
            >>> finding.check.value, finding.signal, finding.verdict.value, round(finding.details["mean"], 3)
            ('safe_cost', 'opt_out', 'contradicted', 0.5)
            >>> agent.decide(sw.ArmSet(2)).reason.value
            'assumption_contradicted'
        """
        with self._lock:
            health = check_health(self.policy, self._learned.state, self._learned.statistics)
            return add_observed_health(self.policy, health, self._observed_costs)

    def acknowledge_alert(self, name: str, note: str = "") -> None:
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
            >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"opt_out": 0.02}, interval="kl"))
            >>> agent.learn_log([0] * 400, [0.0] * 400, [1.0, 0.0] * 200)
            >>> agent.acknowledge_alert("safe cost of opt_out", "Ana: a broken feed on Monday")
            >>> agent.health().ok
            True
        """
        if isinstance(self._policy, PolicyAdapter):
            text = "this policy has only start, decide and learn, so it raises no alerts to acknowledge"
            raise InvalidProblem(ErrorCode.UNSUPPORTED, text)
        with self._lock:
            acknowledge(self._policy, self._learned.state, self._learned.statistics, name, note)
            self._learned.update_count += 1  # snapshots from now on are newer than those with the alert

    def report(self, names: Any = None) -> Report:
        """Summarize traffic, rewards against the safe action, limits and actions; `print` shows a table.

        Args:
            names: The names of the listed actions, in order.

        Returns:
            The report; `to_dict` is for JSON.

        Raises:
            InvalidProblem: `names` does not list every action once.

        Example:
            >>> import stagewise as sw
            >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
            >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.5), seed=1)
            >>> for _ in range(10):
            ...     agent.learn(agent.decide(sw.ArmSet(2)), reward=0.6, cost=0.1)
            >>> report = agent.report(names=["nothing", "offer"])
            >>> report.rounds, [action.name for action in report.actions], report.limits[0].margin >= 0.0
            (10, ['offer', 'nothing'], True)
        """
        with self._lock:
            labels = getattr(self.policy, "names", None) if names is None else names
            learned = self._learned
            return build_report(self.policy, learned.state, learned.statistics, labels, self._observed_costs)

    def register_decision(self, decision: Decision | Mapping[str, Any], now: Any = None) -> int:
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
            >>> decision = sw.Replica(agent.replica_snapshot(), name="pod-3").decide(sw.ArmSet(2))
            >>> agent.register_decision(decision.to_dict())
            0
        """
        parsed, policy = parse_decision(decision), self._require_base_policy("replicas are")
        with self._lock:
            self._identity.check_unregistered(parsed)
            played = policy.check_played(PlayedAction(parsed[0], parsed._position, parsed.step_size, parsed._safe))
            if parsed._uncached:
                policy.cache_offered(self._learned.state, parsed)  # raises before anything changes
            at = self._advance_time(now) if self._queue.windows or now is not None else 0
            if parsed._uncached:
                self._learned.cache_offered(parsed)
            round_ = self._add(played.ray, PlayedAction(played.action) if parsed._uncached else played, at)
            self._identity.register(parsed.id, round_)
            self._learned.statistics.count_context(dict.fromkeys(parsed._clipped, 1))
            return round_

    def replica_snapshot(self) -> Snapshot:
        """Return the policy, its memory and the alerts as an immutable value, for a `Replica`.

        Returns:
            The snapshot.

        Raises:
            InvalidProblem: The policy is not one of stagewise.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
            >>> sw.Agent(policy, seed=1).replica_snapshot().version
            0
        """
        with self._lock:
            learned, policy = self._learned, self._policy
            check_kind(self.policy)
            alerts, acknowledged = dict(learned.statistics.alerts), dict(learned.statistics.acknowledged)
            memory, count = learned.state.memory.tobytes(), learned.update_count
            return Snapshot(copy(policy), memory, count, self.seed, self.name, alerts, acknowledged)

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
                fields, round_ = self._to_fields(), self.round
            self._ownership.write(target, encode_file(fields), round_, replaces)

    def _to_fields(self) -> dict[str, Any]:
        """Return the content of a file, which later calls do not change."""
        policy, queue, identity, costs = self._policy, self._queue, self._identity, self._observed_costs
        if costs is not None:
            costs.settle()  # the file keeps only rows of decisions that are not over
        return {
            "policy": encode_value(policy),
            "generation": self._ownership.generation + 1,
            "writer": self._ownership.writer,
            "seed": self.seed,
            "name": self.name,
            "former_prefixes": dict(identity.former_prefixes),
            **self._learned.to_dict(),
            "learning_order": self.learning_order,
            "windows": encode_windows(self._windows),
            "queue": queue.to_dict(),
            "played": {str(index): encode_played(played) for index, played in queue.played.items()},
            "registered": identity.to_dict(),
            "observed_costs": None if costs is None else costs.to_list(),
            "segments": list_segment_names(policy, self._learned.state.memory, queue.kept_rows),
        }

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
        raw = read_file(source)
        content = decode_file(source, raw)
        try:
            agent = cls._from_fields(content, clock)
        except StagewiseError as error:
            raise InvalidFile(
                ErrorCode.STATE_MISMATCH if isinstance(error, InvalidFile) else ErrorCode.FILE_INVALID,
                "{path} holds invalid settings: {error}; start a new agent and give it the log (learn_log)",
                path=format_path(source),
                error=format_error(error),
            ) from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError, RecursionError) as e:
            template = "{path} lacks a field or has one of the wrong type: {error}"
            data = {"path": format_path(source), "error": format_error(e)}
            raise InvalidFile(ErrorCode.FILE_CORRUPT, template, **data) from None
        if policy is not None:
            given = policy.policy() if isinstance(policy, Problem) else policy
            check_same_policy(source, agent.policy, given)  # type: ignore[arg-type]
        if name is not None:
            agent._identity = agent._identity.with_name(name, agent.round)
        agent._ownership.learn(source, raw, agent.round)
        return agent

    @classmethod
    def _from_fields(cls, content: dict[str, Any], clock: Callable[[], float]) -> "Agent":
        """Return the agent of a file, fully validated."""
        policy = decode_value(content["policy"])
        if not isinstance(policy, BasePolicy):
            raise InvalidProblem(ErrorCode.WRONG_TYPE, "the stored policy is not a policy of stagewise")
        seed = check_seed(content["seed"])
        windows = {str(signal): OutcomeWindow(*entry) for signal, entry in content["windows"].items()}
        order: Any = check_choice(content["learning_order"], ORDERS, "learning_order")
        agent = cls(policy, seed, order, name=check_name(content["name"], "name"), windows=windows, clock=clock)
        agent._learned.restore(content)
        queue, played = agent._queue, content["played"].items()
        queue.restore(content["queue"], {int(index): decode_played(policy, *entry) for index, entry in played})
        signals = range(len(queue.names))
        waits = {index for k in signals for status in (MISSING, BUFFERED) for index in queue.find(k, status)}
        if not agent._keeps_rows and waits - queue.played.keys():
            raise InvalidProblem(ErrorCode.FILE_CORRUPT, "a stored decision is pending without its action")
        if agent._keeps_rows and queue.end > queue.oldest:
            policy.check_logged_actions(queue.rows[queue.oldest - queue.base : queue.end - queue.base])
        former = content["former_prefixes"].items()
        former_prefixes = {str(prefix): parse_count(r, "round", queue.end + 1) for prefix, r in former}
        agent._identity = Identity(seed, agent.name, former_prefixes)
        agent._identity.restore(content["registered"], queue.end)
        if agent._observed_costs is not None:
            agent._observed_costs.restore(content["observed_costs"])
        agent._ownership = Ownership(parse_count(content["generation"], "generation"))
        for segment in content["segments"]:
            hash_segment(str(segment))  # registers the segment's name
        return agent
