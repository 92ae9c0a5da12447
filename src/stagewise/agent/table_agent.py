"""Tables of an agent: decide for a table of users, register decisions of other processes, and learn outcomes by id."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.agent.agent_statistics import RECENT, RegisteredProposal, Statistics
from stagewise.agent.base_agent import BaseAgent
from stagewise.agent.decision_table import (
    DecidedBatch,
    TableDecider,
    encode_contexts,
    get_batch_column,
    has_code,
    name_context_column,
    read_proposed,
    require_problem,
)
from stagewise.agent.frames import read_times
from stagewise.agent.identity import SEPARATOR, DecisionIds, compute_digests, compute_draws, find_repeated
from stagewise.agent.outcome_table import (
    ACCEPTED,
    DUPLICATE,
    INVALID,
    STATUSES,
    UNKNOWN,
    Reports,
    Statuses,
    read_reports,
    report_outcomes,
)
from stagewise.agent.outcomes import MICROSECONDS
from stagewise.agent.replica import Snapshot
from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.files.tables import convert_like, read_batches, to_list, to_numpy
from stagewise.policies.context_encoder import TIME, build_rows, count_clipped
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.errors import ErrorCode
from stagewise.problem.proposal import Proposal
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason

Treat = Callable[[Any, bool], tuple[Any, Statuses]]
"""Registers or learns a record batch, the first or a later one; returns its ids and the statuses of its rows."""


class ParsedDecisions(NamedTuple):
    """The decisions of a record batch, to be registered."""

    ids: Any
    """A column."""
    statuses: Statuses
    runs: npt.NDArray[np.object_]
    digests: Ints
    """(n, 2) of the ids."""
    rows: Floats
    """(n, D) as the agent learns them."""
    reasons: npt.NDArray[np.object_]
    proposed: tuple[Floats, Floats] | None
    clipped: dict[str, Flags]


class TableAgent(BaseAgent):
    """An agent that decides and learns tables, record batch by record batch."""

    replica_snapshot: Callable[[], Snapshot]

    def decide_frame(
        self,
        users: Any,
        *,
        id: Any = "user_id",
        run: str | None = None,
        now: Any = None,
        propose: Any = None,
        scores: Any = None,
    ) -> Any:
        """Decide for a table of users, all with what is known now, and register the decisions.

        Each decision is the one that `decide(row, id=f"{run}:{user}")` makes. It depends on the user's row and id and
        on what was learned, not on other rows. If a table is decided again before anything is learned, its decisions
        are the same and count once. With a drift or a half-life they also depend on the time: give the same `now`.

        Args:
            users: A frame of pandas, polars, PyArrow or DuckDB, any table with the Arrow interface, a mapping of
                columns, or the path of a .parquet or .csv file, with the id of each user and the problem's context.
            id: The column of the users' ids: texts or whole numbers; in a .csv file they are texts.
            run: A name of this table, such as its date; None: the number of decisions so far. A user is decided once
                in a run.
            now: The time, if the clock is not to be used; needed to decide a table again with a drift or a half-life.
            propose: The column of the proposed actions, or a mapping from actions to the columns of their
                probabilities, or a list of such columns if they are named as the actions. What is missing to 1 is the
                safe action's.
            scores: A mapping from every action to the column of its score, or a list of columns that are named as the
                actions; the safe action may be left out.

        Returns:
            The same kind of frame (a file gives an Arrow table) with one row for each user: the id, `decision_id`, the
            context, `action`, `propensity`, the probability of every action, the pessimistic cost and the estimate of
            every limit, with proposals what was proposed, `proposal.overlap` and `proposal.binding`, then
            `estimated_reward`, `reward_guarantee` if the reward has a half-life, `reason`, and `error`: a code where a
            row could not be decided. It has the safe action then, and no decision id.

        Raises:
            InvalidActions: A column is missing or has the wrong type. No row is decided then.
            InvalidOutcome: The name of the run is invalid, or its decisions are complete.

        Example:
            >>> import stagewise as sw
            >>> limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}
            >>> signals = {"reward": sw.Reward("click"), "limits": limits}
            >>> signals |= {"action_names": ["nothing", "offer"], "safe_name": "nothing"}
            >>> problem = sw.Problem(context={"age": (18, 99)}, **signals)
            >>> agent = sw.Agent(problem, seed=7)
            >>> decisions = agent.decide_frame({"user_id": [101, 102, 103], "age": [34.0, 51.0, 210.0]}, run="night")
            >>> decisions["action"].tolist()[2], str(decisions["error"][2]), agent.pending_count
            ('nothing', 'context_out_of_range', 2)
        """
        from arro3.core import Table

        decisions = TableDecisions(self, id, run, now, propose, scores)
        table = Table.from_batches(list(decisions.iter_batches(read_batches(users, id).batches)))
        decisions.register()
        return convert_like(users, table)

    def register_frame(self, decisions: Any, *, now: Any = None) -> Any:
        """Register decisions of `decide_frame`, before they are acted on; outcomes are then learned by their ids.

        Args:
            decisions: A table of decisions, as `decide_frame` returns it, or the path of a file.
            now: The time, if the clock is not to be used.

        Returns:
            The same kind of frame with `decision_id` and `status`, a `RowStatus`, for each row: "accepted", "duplicate"
            for a decision that is already registered, "unknown" for one of another agent, or "invalid". Rows with an
            `error` are "invalid". Act on those that are accepted.

        Raises:
            InvalidActions: A column is missing or has the wrong type.
            InvalidOutcome: The decisions of a run are complete.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}}
            >>> agent = sw.Agent(sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals), seed=7)
            >>> decisions = sw.decide_frame(agent.replica_snapshot(), {"user_id": [101, 102]}, run="night")
            >>> agent.register_frame(decisions)["status"].tolist(), agent.pending_count
            (['accepted', 'accepted'], 2)
        """
        from arro3.core import Table

        policy = require_problem(self.policy)

        parsed = [self._parse_decisions(policy, batch) for batch in read_batches(decisions, "decision_id").batches]
        with self._lock:
            for run in dict.fromkeys(run for one in parsed for run in one.runs[one.statuses == ACCEPTED].tolist()):
                self._identity.ids.check_open(run)  # raises before anything is registered
            at = self._advance_time(now) if self._queue.windows or now is not None else 0

            def register(one: ParsedDecisions, _: bool) -> tuple[Any, Statuses]:
                return self._register_parsed(policy, one, at)

            batches = list(build_status_batches(iter(parsed), "decision_id", register, Counter()))
            self._identity.ids.forget(self._queue.base)
        return convert_like(decisions, Table.from_batches(batches))

    def _parse_decisions(self, policy: ProblemPolicy, batch: Any) -> "ParsedDecisions":
        """Read the decisions of a record batch, or raise."""
        names, problem, identity = tuple(batch.schema.names), policy.problem, self._identity
        id_column, actions = (get_batch_column(batch, name, names, "the table") for name in ("decision_id", "action"))
        ids, statuses = to_list(id_column), np.full(batch.num_rows, ACCEPTED, dtype=np.int8)
        contexts = encode_contexts(problem, batch, batch.num_rows, name_context_column)
        indices = np.array([problem._indices.get(action, -1) for action in to_numpy(actions).tolist()], dtype=np.int64)
        statuses[list(contexts.refused)], statuses[indices < 0] = INVALID, INVALID
        prefixes = {identity.id_prefix, *identity.former_prefixes}
        texts = [id_ if isinstance(id_, str) else "" for id_ in ids]
        parts = [text.split(SEPARATOR, 2) if text.isprintable() else [] for text in texts]
        for row in [i for i, part in enumerate(parts) if len(part) != 3 or part[0] not in prefixes]:
            statuses[row], parts[row] = UNKNOWN if texts[row] else INVALID, ["", "", ""]
        times = read_times({name: to_numpy(batch.column(name)) for name in names}, TIME) if policy.needs_times else None
        runs = np.array([part[1] for part in parts], dtype=object)
        reasons = to_numpy(batch.column("reason")) if "reason" in names else np.full(len(ids), None, dtype=object)
        return ParsedDecisions(
            id_column, statuses, runs, compute_digests(self.seed, texts), build_rows(indices.tolist(), contexts, times),
            reasons, read_proposed(problem, batch, names), contexts.clipped,
        )  # fmt: skip

    def _register_parsed(self, policy: ProblemPolicy, parsed: "ParsedDecisions", at: int) -> tuple[Any, Statuses]:
        """Register the decisions of a record batch; return their ids and statuses."""
        ids, statuses, runs, digests, rows, reasons, proposed, clipped = parsed
        statistics = self._learned.statistics
        for run in dict.fromkeys(runs[statuses == ACCEPTED].tolist()):
            its = np.flatnonzero((statuses == ACCEPTED) & (runs == run))
            new = self._register_rows(run, digests[its, 0], [rows[its]], -1, at)
            statuses[np.delete(its, new)] = DUPLICATE
        statistics.count_context(count_clipped([clipped], statuses == ACCEPTED))
        safe_only = (statuses == ACCEPTED) & has_code(reasons)
        statistics.safe_only_rounds += int(safe_only.sum())
        statistics.registered += [
            None if proposed is None else RegisteredProposal(rows[row], proposed[0][row], proposed[1][row])
            for row in np.flatnonzero(statuses == ACCEPTED)[-RECENT:].tolist()
        ]
        contradicted = np.flatnonzero(safe_only & (reasons == str(FallbackReason.ASSUMPTION_CONTRADICTED)))
        if contradicted.size:
            self._record_alerts(policy, rows[contradicted[0]], compute_draws(digests[contradicted[:1]])[0])
        return ids, statuses

    def _register_rows(
        self, run: str, digests: Ints, blocks: Sequence[Floats], version: int, at: int, marks: Ints | None = None
    ) -> Ints:
        """Register decisions with blocks of their rows; return the indices of those that were not registered yet."""
        queue, ids = self._queue, self._identity.ids
        ids.check_open(run)
        is_new = (ids.find(digests) < 0) & ~find_repeated(digests)
        new, first, start = np.flatnonzero(is_new), 0, queue.end
        if self._observed_costs is not None and queue.end - queue.base + new.size > len(queue.dates):
            self._observed_costs.settle()  # before rows are left out
        queue.reserve(new.size)
        plays = self._learned.statistics.plays
        for block in blocks:
            kept = is_new[first : first + len(block)]
            rows, first = block if kept.all() else block[kept], first + len(block)
            queue.add_rows(rows, at)
            for action, count in enumerate(np.bincount(rows[:, 0].astype(np.int64)).tolist()):
                if count:
                    plays[action] = plays.get(action, 0) + count
        ids.add(run, digests[new], start + np.arange(new.size), version, None if marks is None else marks[new])
        return new

    def _record_alerts(self, policy: ProblemPolicy, row: Floats, draw: Ints) -> None:
        """Record the contradictions that a decision found."""
        self._learned.decide(policy.context_in(row), RandomKey(*draw.tolist()))

    def learn_outcomes(self, outcomes: Any, *, id: Any = "decision_id", now: Any = None) -> Any:
        """Learn the outcomes of many decisions, by their ids.

        Every row is treated as by `learn`: it may have all signals or some, in any order and in several rows, and each
        counts once. A row that cannot be used stops no other row.

        Args:
            outcomes: A frame of pandas, polars, PyArrow or DuckDB, any table with the Arrow interface, a mapping of
                columns, or the path of a .parquet or .csv file, with the id of each decision and a column for each
                signal that it reports. A missing value is not reported yet. Other columns are ignored.
            id: The column of the decision ids.
            now: When the outcomes arrived, if there are windows and the clock is not to be used.

        Returns:
            The same kind of frame with the id and `status`, a `RowStatus`, for each row: "accepted", "duplicate",
            "late", "unknown" or "invalid".

        Raises:
            InvalidActions: The column of the ids is missing.
            InvalidOutcome: No signal has a column, or a column has the wrong type.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}}
            >>> agent = sw.Agent(sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals), seed=7)
            >>> ids = agent.decide_frame({"user_id": [101, 102]})["decision_id"].tolist()
            >>> outcomes = {"decision_id": [*ids, ids[0], "x:y:z"], "click": [1, 0, 1, 1], "opt_out": [False] * 4}
            >>> agent.learn_outcomes(outcomes)["status"].tolist(), agent.pending_count
            (['accepted', 'accepted', 'duplicate', 'unknown'], 0)
        """
        from arro3.core import Table

        return convert_like(outcomes, Table.from_batches(list(self._learn_batches(outcomes, id, now, Counter()))))

    def _learn_batches(self, outcomes: Any, id_column: Any, now: Any, counts: Counter[str]) -> Iterator[Any]:
        """Learn the outcomes of one record batch after another; yield ids with statuses, and count these."""
        policy = require_problem(self.policy)

        def learn(batch: Any, is_first: bool) -> tuple[Any, Statuses]:
            with self._lock:
                reports = read_reports(policy, self._identity, self._queue.end, batch, id_column)
                if is_first and (self._queue.windows or now is not None):
                    self._advance_time(now)
                return batch.column(id_column), self._learn_reports(reports)

        try:
            yield from build_status_batches(read_batches(outcomes, id_column).batches, id_column, learn, counts)
        finally:
            with self._lock:
                self._check_observed_costs()

    def _learn_reports(self, reports: Reports) -> Statuses:
        """Learn the outcomes of a batch; return the statuses of its rows."""
        count, statuses = reports.rounds.size, np.empty(0, dtype=np.int8)
        size = max(count, 1) if self._queue.in_order else 1  # on arrival: row by row
        for start in range(0, count, size):
            part = Reports._make(column[start : start + size] for column in reports)
            found, new = report_outcomes(self._queue, part)
            statuses = np.concatenate([statuses, found])
            if self._observed_costs is not None:
                for signal, indices in new:
                    self._observed_costs.observe_rows(indices, signal)
            self._learn_due()
        self._learned.statistics.refused += int((statuses == INVALID).sum())
        return statuses


def build_status_batches(batches: Iterator[Any], id_column: Any, treat: Treat, counts: Counter[str]) -> Iterator[Any]:
    """Yield the ids and the statuses of all rows of a table, and count the statuses."""
    from arro3.core import Array, DataType, RecordBatch

    texts = Array([str(status) for status in STATUSES], DataType.string())
    for number, batch in enumerate(batches):
        ids, statuses = treat(batch, number == 0)
        for status, count in enumerate(np.bincount(statuses, minlength=len(STATUSES)).tolist()):
            counts[STATUSES[status]] += count
        column = texts.take(Array.from_numpy(statuses.astype(np.int64)))
        yield RecordBatch.from_arrays([ids, column], names=[id_column, "status"])


class TableDecisions:
    """The decisions of one table: made batch by batch by one snapshot, then registered at once."""

    def __init__(
        self,
        agent: TableAgent,
        id_column: Any,
        run: str | None,
        now: Any = None,
        propose: Any = None,
        scores: Any = None,
    ) -> None:
        with agent._lock:
            is_timed = agent._queue.windows or now is not None or agent._needs_times
            self.at = agent._advance_time(now) if is_timed else 0
        snapshot = agent.replica_snapshot()
        self.agent, self.version = agent, snapshot.version
        run = str(agent.round) if run is None else run
        self.decider = TableDecider(snapshot, id_column, run, self.at / MICROSECONDS, propose, scores)
        self.run, self.taken = self.decider.run, DecisionIds()
        agent._identity.ids.check_open(self.run)
        self.rows: list[Floats] = []
        self.digests: list[Ints] = []
        self.marks: list[Ints] = []
        self.clipped: list[dict[str, Flags]] = []
        self.safe_only: list[Flags] = []
        self.row_count = self.error_count = 0
        self.contradicted: tuple[Floats, Ints] | None = None
        self.last: list[tuple[int, Floats, str, Proposal | None]] = []  # the last decisions, for reports

    @property
    def is_registered(self) -> bool:
        """Whether the agent has registered decisions of the run."""
        return self.run in self.agent._identity.ids.runs

    def iter_batches(self, users: Iterator[Any]) -> Iterator[Any]:
        for batch in users:
            decided = self.decider.decide(batch)
            marks = decided.marks
            self.reject_repeated(decided, marks)
            good = decided.good
            self.rows.append(decided.rows[good])
            self.digests.append(decided.digests[good])
            self.marks += [] if marks is None else [marks[good]]
            self.safe_only.append(has_code(decided.reasons[good]))
            self.clipped.append({name: rows[good] for name, rows in decided.clipped.items()})
            last = list(enumerate(np.flatnonzero(good).tolist(), self.row_count - self.error_count))[-RECENT:]
            new = ((at, decided.rows[row], decided.ids[row], decided.get_proposal(row)) for at, row in last)
            self.last = [*self.last, *new][-RECENT:]
            self.row_count, self.error_count = self.row_count + good.size, self.error_count + int((~good).sum())
            if decided.contradicted >= 0 and self.contradicted is None:
                at = decided.contradicted
                digests = compute_digests(self.agent.seed, [decided.ids[at] or "::"])
                self.contradicted = decided.rows[at], compute_draws(digests)[0]
            yield self.decider.build_batch(batch, decided)

    def reject_repeated(self, decided: DecidedBatch, marks: Ints | None) -> None:
        """Mark users who stand in the table before, and those that the agent decided otherwise before."""
        good = np.flatnonzero(decided.good)
        digests = decided.digests[good]
        repeated = find_repeated(digests) | (self.taken.find(digests) >= 0)
        decided.reject(good[repeated], ErrorCode.DUPLICATE_NAME, self.decider)
        good = good[~repeated]
        self.taken.add(self.run, decided.digests[good], good, 0)
        queue, ids = self.agent._queue, self.agent._identity.ids
        rounds = ids.find(decided.digests[good])
        known = rounds >= 0
        if known.any():
            run = ids.runs.get(self.run)
            same = rounds >= (queue.base if run is None else max(queue.base, run.since))
            same &= run is not None and self.version == run.version
            rows = queue.rows[np.maximum(rounds - queue.base, 0)]
            same &= (rows == decided.rows[good]).all(axis=1)
            same &= (run is None or not run.proposed) if marks is None else ids.find(marks[good]) == rounds
            decided.reject(good[known & ~same], ErrorCode.CONFLICT, self.decider)

    def register(self) -> None:
        agent, digests = self.agent, np.concatenate(self.digests)
        with agent._lock:
            marks = np.concatenate(self.marks) if self.marks else None
            new = agent._register_rows(self.run, digests, self.rows, self.version, self.at, marks)
            agent._identity.ids.forget(agent._queue.base)
            self.rows = []
            agent._learned.statistics.safe_only_rounds += int(np.concatenate(self.safe_only)[new].sum())
            agent._learned.statistics.count_context(count_clipped(self.clipped, new))
            if self.contradicted is not None:
                agent._record_alerts(require_problem(agent.policy), *self.contradicted)  # an action may be new
            elif new.size and not self.decider.learned.statistics.alerts:
                first = agent.round - new.size
                self.record_recent(
                    agent._learned.statistics, dict(zip(new.tolist(), range(first, agent.round), strict=True))
                )

    def record_recent(self, statistics: Statistics, rounds: dict[int, int]) -> None:
        """Record the last decisions that are new, with their bounds, for reports."""
        policy, last = self.decider.policy, [one for one in self.last if one[0] in rounds]
        draws = compute_draws(compute_digests(self.agent.seed, [id_ for _, _, id_, _ in last]))
        for (at, row, id_, proposal), draw in zip(last, draws.tolist(), strict=True):
            decision = policy.choose(self.decider.learned.state, policy.context_in(row, proposal), RandomKey(*draw))
            decision = decision._replace(round=rounds[at])
            decision._id = id_
            statistics.recent.append(decision)
