"""Decide for tables of users, record batch by record batch.

A decision is a function of the snapshot, the run, the user's id and the user's row. It does not depend on the other
rows: neither partitions nor order nor retries change it, and it is equal to the bit to `Agent.decide(row, id=...)`.
"""

import math
from collections.abc import Callable
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.agent.identity import (
    LONGEST_ID,
    SEPARATOR,
    check_run,
    compute_digests,
    compute_draws,
    derive_id_prefix,
    mark_proposals,
)
from stagewise.agent.proposal_columns import parse_proposal_columns
from stagewise.agent.replica import Snapshot, check_snapshot
from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.engine.layout import SAFE_INDEX
from stagewise.engine.workspace import CONTRADICTED
from stagewise.files.tables import convert_like, is_text, read_batches, to_numpy
from stagewise.policies.context_caps import FIRST_NUMBER
from stagewise.policies.context_encoder import TIME, ContextRows, build_rows
from stagewise.policies.problem import Problem
from stagewise.policies.problem_policy import BatchDecision, DecisionColumns, ProblemPolicy, decide_rows, get_cause
from stagewise.problem.columns import map_unique, suggest_column
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr
from stagewise.problem.proposal import ROUNDING, Proposal, find_binding
from stagewise.problem.timing import parse_timestamp
from stagewise.records.decision import RewardGuarantee
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason

RESERVED_COLUMNS = ("decision_id", "action", "propensity", "estimated_reward", "reward_guarantee", "reason", "error")
PROPOSED, SCORES = "proposed.", "scores."  # before the name of an action
OVERLAP, BINDING = "proposal.overlap", "proposal.binding"
SETTLED_CODE = -CONTRADICTED  # codes up to it: the data contradict a declared value
Codes = npt.NDArray[np.object_]


def name_context_column(name: str) -> str:
    """Return the column of a decision table that holds a column of the context, as the export of a server names it."""
    return f"context.{name}" if name in RESERVED_COLUMNS else name


def require_problem(policy: Any) -> ProblemPolicy:
    """Return the policy of a problem, or raise."""
    if not isinstance(policy, ProblemPolicy):
        raise InvalidProblem(ErrorCode.UNSUPPORTED, "this agent has no problem; tables are decided for a problem")
    return policy


def get_batch_column(batch: Any, name: Any, names: tuple[str, ...], what: str) -> Any:
    """Return a column of a record batch, or raise with the name that was probably meant."""
    if not isinstance(name, str) or name not in names:
        template = "{what} names {name}, which is no column of the table{meant}; its columns are {listed}"
        data = {"what": what, "name": safe_repr(name), "listed": join_names(names)}
        raise InvalidActions(ErrorCode.COLUMN_MISSING, template, meant=suggest_column(name, list(names)), **data)
    return batch.column(name)


def encode_contexts(
    problem: Problem, batch: Any, rows: int, rename: Callable[[str], str] = lambda name: name
) -> ContextRows:
    """Return the contexts of a record batch; a column whose values may be missing may be absent."""
    columns, names = dict[str, Any](), tuple(batch.schema.names)
    for name in problem.context_names:
        declared = problem.context_columns.get(name)
        if rename(name) not in names and declared is not None and declared.missing is not None:
            columns[name] = np.full(rows, None, dtype=object)
        else:
            columns[name] = to_numpy(get_batch_column(batch, rename(name), names, "the context"))
    return problem.encode_columns(columns, rows)


def read_ids(column: Any, name: str) -> tuple[list[str], Codes]:
    """Return ids as texts, and the error codes of those that cannot be used."""
    from arro3.core import DataType

    kind = column.type
    if kind.is_integer(kind):
        column = column.cast(DataType.string())
    elif kind.is_dictionary(kind):
        column = column.cast(kind.value_type)
    kind = column.type
    if not is_text(kind) and column.null_count < len(column):
        subject, rule = f"the type of the column {safe_repr(name)}", "that of texts or whole numbers"
        raise InvalidActions.must_be(ErrorCode.COLUMN_WRONG_TYPE, subject, str(kind), rule)
    errors, ids = np.full(len(column), None, dtype=object), column.to_pylist()
    lengths = np.fromiter((0 if id_ is None else len(id_) for id_ in ids) if column.null_count else map(len, ids), int)
    for row in np.flatnonzero((lengths == 0) | (lengths > LONGEST_ID)).tolist():
        errors[row] = ErrorCode.INVALID_NAME if ids[row] else ErrorCode.MISSING_VALUE
        ids[row] = ""
    return ids, errors


def has_code(codes: Codes) -> Flags:
    """Return which rows have a code (n,)."""
    return codes.astype(np.bool_)


def read_proposed(problem: Problem, batch: Any, names: tuple[str, ...]) -> tuple[Floats, Floats] | None:
    """Return the proposed probabilities and those that were played (n, K) of a decision table; None: there are none."""
    tables = []
    for prefix in (PROPOSED, "probability."):
        columns = [to_numpy(batch.column(prefix + name)) for name in problem.action_names if prefix + name in names]
        if len(columns) < len(problem.action_names) or any(column.dtype.kind != "f" for column in columns):
            return None
        tables.append(np.column_stack(columns))
    return tables[0], tables[1]


class DecidedBatch(NamedTuple):
    """A batch of users with their decisions."""

    ids: list[str]
    """Of the decisions; empty where there is an error."""
    digests: Ints
    """(n,) of the ids."""
    rows: Floats
    """(n, D) as the agent learns them: the action, 1, numbers, segments."""
    odds: Floats
    """(n, K)."""
    costs: Floats
    """(n, m) pessimistic costs."""
    estimates: Floats
    """(n, 1 + m); NaN: there is none."""
    reasons: Codes
    errors: Codes
    """(n,) the codes of rows that cannot be decided, None for others."""
    contradicted: int
    """The first row whose data contradict a declared value; −1: none."""
    clipped: dict[str, Flags]
    """By number, which rows (n,) were beyond its range."""
    proposal: Proposal | None
    """What was proposed, values (n, K); None: the problem's own policy decided."""

    @property
    def good(self) -> Flags:
        return ~has_code(self.errors)

    @property
    def marks(self) -> Ints | None:
        """The digests (n,) of the ids with what was proposed for them."""
        return None if self.proposal is None else mark_proposals(self.digests, self.proposal)

    def get_proposal(self, row: int) -> Proposal | None:
        """Return what was proposed for one user."""
        return None if self.proposal is None else self.proposal.take(row)

    def reject(self, rows: Ints, code: ErrorCode, decider: "TableDecider") -> None:
        """Replace decisions by the safe action, with an error."""
        self.errors[rows] = code
        decider.play_safe(self, rows, None)
        for row in rows.tolist():
            self.ids[row] = ""


class TableDecider:
    """Decides for record batches of users, by a snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        id_column: Any,
        run: str,
        seconds: float | None = None,
        propose: Any = None,
        scores: Any = None,
    ) -> None:
        check_snapshot(snapshot)
        self.policy, self.learned = require_problem(snapshot.policy), snapshot._learned
        self.problem: Problem = self.policy.problem
        self.id_column, self.run, self.seed = id_column, check_run(run), snapshot.seed
        self.seconds = seconds if self.policy.needs_times else None
        if self.policy.needs_times and seconds is None:
            text = "now is missing; a limit has a drift or the reward a half-life, so decisions need their time"
            raise InvalidActions(ErrorCode.MISSING_VALUE, text)
        self.proposals = parse_proposal_columns(self.problem, propose, scores)
        self.prefix = f"{derive_id_prefix(snapshot.seed, snapshot.agent_name)}{SEPARATOR}{run}{SEPARATOR}"
        self.safe_index = int(self.policy.layout.item(SAFE_INDEX))
        given = {name_context_column(name) for name in self.problem.context_names} | {TIME}
        if not isinstance(id_column, str) or id_column in RESERVED_COLUMNS or id_column in given:
            rule = "a column with another name than those of the context and of decisions"
            raise InvalidActions.must_be(ErrorCode.INVALID_NAME, "id", id_column, rule)

    def decide(self, batch: Any) -> DecidedBatch:
        """Decide for the users of a record batch."""
        names, problem = tuple(batch.schema.names), self.problem
        users, errors = read_ids(get_batch_column(batch, self.id_column, names, "id"), self.id_column)
        contexts = encode_contexts(problem, batch, len(users))
        for row, error in contexts.refused.items():
            errors[row] = errors[row] or error.code
        proposal = None
        if self.proposals is not None:
            what = "scores" if self.proposals.is_scores else "propose"
            proposal, refused = self.proposals.read(lambda name: to_numpy(get_batch_column(batch, name, names, what)))
            for row, error in refused.items():
                errors[row] = errors[row] or error.code
        ids = [self.prefix + user for user in users]
        digests, count, m = compute_digests(self.seed, ids), len(ids), self.policy.thresholds.values.size
        times = None if self.seconds is None else np.full(count, self.seconds)
        rows = build_rows([self.safe_index] * count, contexts, times)
        decided = DecidedBatch(
            ids, digests[:, 0], rows, np.empty((count, self.policy.actions)), np.empty((count, m)),
            np.empty((count, 1 + m)), np.full(count, None, dtype=object), errors, -1, contexts.clipped, proposal,
        )  # fmt: skip
        bad = np.flatnonzero(~decided.good)
        good = np.flatnonzero(decided.good)
        last = FIRST_NUMBER + contexts.features.shape[1]
        numbers, rest = np.ascontiguousarray(rows[good, FIRST_NUMBER:last]), np.ascontiguousarray(rows[good, last:])
        made = decide_rows(
            self.policy, self.learned.state, numbers, rest, compute_draws(digests[good]),
            proposals=None if proposal is None else proposal.take(good),
        )  # fmt: skip
        self.fill(decided, good, made)
        self.play_safe(decided, bad, None)
        for row in bad.tolist():
            ids[row] = ""
        contradicted = good[made.codes <= SETTLED_CODE]
        if self.learned.statistics.alert is not None:
            self.play_safe(decided, good, FallbackReason(self.learned.statistics.alert.reason))
        elif contradicted.size and self.learned.statistics.acknowledged:
            for row in contradicted.tolist():
                self.decide_alone(decided, row, compute_draws(digests[row : row + 1])[0])
        else:
            self.play_safe(decided, contradicted, FallbackReason.ASSUMPTION_CONTRADICTED)
        return decided._replace(contradicted=int(contradicted[0]) if contradicted.size else -1)

    def fill(self, decided: DecidedBatch, at: Ints, made: DecisionColumns) -> None:
        """Write the policy's decisions."""
        decided.rows[at, 0] = np.where(made.codes >= 0, made.codes, self.safe_index)
        decided.odds[at], decided.costs[at], decided.estimates[at] = made.odds, made.bounds[:, 1:], made.estimates
        for code in np.unique(made.codes[made.codes < 0]).tolist():
            cause = get_cause(code)
            if cause is not None:
                decided.reasons[at[made.codes == code]] = cause.reason

    def play_safe(self, decided: DecidedBatch, at: Ints, reason: FallbackReason | None) -> None:
        """Write the safe action, as it is declared."""
        decided.rows[at, 0], decided.reasons[at] = self.safe_index, reason
        decided.odds[at] = np.arange(self.policy.actions) == self.safe_index
        decided.costs[at], decided.estimates[at] = self.policy.display_thresholds.at_safe, np.nan

    def decide_alone(self, decided: DecidedBatch, row: int, draw: Ints) -> None:
        """Decide for one user whose data contradict a declared value, where alerts were acknowledged."""
        context = self.policy.context_in(decided.rows[row], decided.get_proposal(row))
        made = BatchDecision.from_decision(self.learned.decide_aside(context, RandomKey(*draw.tolist())))
        decided.rows[row, 0], decided.odds[row], decided.costs[row] = made.index, made.odds, made.pessimistic_cost
        decided.estimates[row] = [made.estimated_reward, *made.estimated_cost]
        decided.reasons[row] = None if made.cause is None else made.cause.reason

    def build_batch(self, batch: Any, decided: DecidedBatch) -> Any:
        """Return the decisions as a record batch: the id, the decision, the context, what was decided, and why."""
        from arro3.core import Array, DataType, RecordBatch

        problem, text = self.problem, DataType.string()
        actions, count = decided.rows[:, 0].astype(np.int64), len(decided.ids)
        names, given = Array(list(problem.action_names), text), batch.schema.names
        columns = {
            self.id_column: batch.column(self.id_column),
            "decision_id": Array([id_ or None for id_ in decided.ids], text),
            **{name_context_column(name): batch.column(name) for name in problem.context_names if name in given},
            **({} if self.seconds is None else {TIME: Array.from_numpy(np.full(count, self.seconds))}),
            "action": names.take(Array.from_numpy(actions)),
            "propensity": Array.from_numpy(decided.odds[np.arange(count), actions]),
        }
        for index, name in enumerate(problem.action_names):
            columns[f"probability.{name}"] = Array.from_numpy(np.ascontiguousarray(decided.odds[:, index]))
        for j, name in enumerate(problem.limits):
            columns[f"limit.{name}.pessimistic_cost"] = to_nullable(decided.costs[:, j])
            columns[f"limit.{name}.estimate"] = to_nullable(decided.estimates[:, 1 + j])
        columns |= self.build_proposal_columns(decided)
        columns["estimated_reward"] = to_nullable(decided.estimates[:, 0])
        if self.policy.reward_half_life is not None:
            columns["reward_guarantee"] = Array([str(RewardGuarantee.FORGETTING)] * count, text)
        columns["reason"], columns["error"] = (
            Array(map_unique(codes.tolist(), lambda code: code and str(code)) if codes.any() else [None] * count, text)
            for codes in (decided.reasons, decided.errors)
        )
        return RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def build_proposal_columns(self, decided: DecidedBatch) -> dict[str, Any]:
        """Return what was proposed, the share of it that is played, and the limits that bind."""
        from arro3.core import Array, DataType

        if decided.proposal is None:
            return {}
        (given, is_scores), (low, length) = decided.proposal, self.policy.reward_span
        prefix, shown = (SCORES, low + length * given) if is_scores else (PROPOSED, given)
        shown = np.where(decided.good[:, np.newaxis], shown, np.nan)
        columns = {f"{prefix}{name}": to_nullable(shown[:, i]) for i, name in enumerate(self.problem.action_names)}
        others, limits = np.arange(self.policy.actions) != self.safe_index, self.policy.display_thresholds
        held = given - decided.odds
        held = np.where(others & (held > ROUNDING), held, 0.0)
        binds = find_binding(limits, decided.costs, self.problem.spans[1, 1:])
        if not is_scores:
            total = np.array(list(map(math.fsum, held.tolist())))
            columns[OVERLAP] = to_nullable(np.where(decided.good, np.maximum(1.0 - total, 0.0), np.nan))
            binds &= (held > 0.0).any(axis=1, keepdims=True)
        texts = map_unique(list(map(tuple, binds.tolist())), lambda row: ", ".join(compress(limits.names, row)))
        good = decided.good.tolist()
        shown_texts = [text if is_good else None for text, is_good in zip(texts, good, strict=True)]
        return {**columns, BINDING: Array(shown_texts, DataType.string())}


def to_nullable(values: Floats) -> Any:
    """Return numbers as an Arrow array, null where they are not finite."""
    from arro3.core import Array, DataType

    if np.isfinite(values).all():
        return Array.from_numpy(np.ascontiguousarray(values))
    finite = np.isfinite(values).tolist()
    return Array(
        [value if is_ok else None for value, is_ok in zip(values.tolist(), finite, strict=True)], DataType.float64()
    )


def decide_frame(
    snapshot: Snapshot,
    users: Any,
    *,
    id: Any = "user_id",
    run: str,
    now: Any = None,
    propose: Any = None,
    scores: Any = None,
) -> Any:
    """Decide for users by a snapshot, in any process: the function that engines for tables call for each batch.

    Each row is decided by itself, so partitions, order and retries do not change a decision. Register the decisions
    with `Agent.register_frame` before they are acted on.

    Args:
        snapshot: The result of `Agent.replica_snapshot`.
        users: A frame of pandas, polars, PyArrow or DuckDB, any table with the Arrow interface, or a mapping of
            columns, with the id of each user and the columns of the problem's context.
        id: The column of the users' ids: texts or whole numbers.
        run: A name of this table, such as its date; a user is decided once in a run.
        now: The time of the decisions, which a problem needs whose means drift.
        propose: The columns of proposals, as for `Agent.decide_frame`.
        scores: The columns of scores, as for `Agent.decide_frame`.

    Returns:
        The same kind of frame as from `Agent.decide_frame`, with one row for each user.

    Raises:
        InvalidActions: A column is missing or has the wrong type.
        InvalidOutcome: The name of the run is invalid.

    Example:
        >>> import stagewise as sw
        >>> limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}
        >>> signals = {"reward": sw.Reward("click"), "limits": limits}
        >>> signals |= {"action_names": ["nothing", "offer"], "safe_name": "nothing"}
        >>> problem = sw.Problem(context={"age": (18, 99)}, **signals)
        >>> snapshot = sw.Agent(problem, seed=7).replica_snapshot()
        >>> users = {"user_id": [101, 102], "age": [34.0, 210.0]}
        >>> decisions = sw.decide_frame(snapshot, users, run="2026-11-19")
        >>> decisions["decision_id"].tolist(), decisions["error"].tolist()
        (['088bcc8335aabd4a:2026-11-19:101', None], [None, 'context_out_of_range'])
    """
    from arro3.core import Table

    decider = TableDecider(snapshot, id, run, None if now is None else parse_timestamp(now), propose, scores)
    batches = [decider.build_batch(batch, decider.decide(batch)) for batch in read_batches(users, id).batches]
    return convert_like(users, Table.from_batches(batches))
