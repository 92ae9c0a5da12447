"""The probabilities of a log and of a candidate in every row, the candidate's weights, and whether they average 1."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.agent import Agent
from stagewise.agent.replica import Replica
from stagewise.engine.compile import Flags, Floats
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log
from stagewise.launch.notes import NoteCode
from stagewise.launch.statistics import compute_radius
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_array, check_number, check_positive
from stagewise.problem.columns import get_numeric_column, list_column_names, list_unique_names
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name

FREQUENCIES = "frequencies"
SUM_TOLERANCE = 1e-3  # of a sum of probabilities that were rounded to three digits
ROUNDING = 1e-9  # a smaller mass counts as zero
NEGLIGIBLE_MASS = 1e-3  # unsupported mass below which an estimate is still given
LOGGING_POLICY = "the log's own policy"
MAX_BOUND_COST = 0.01  # share of the range that a bound may add to an interval before weights are clipped


@dataclass(frozen=True, eq=False)
class Propensities:
    """The probabilities that the log was drawn with."""

    logged: Floats
    """The probability (n,) of the action taken."""
    all_actions: Floats | None
    """The probability (n, K) of every action; None if only that of the action taken is known."""
    source: str
    """Where they come from."""
    is_estimated: bool = False
    """Whether they were estimated from the log."""


def resolve_propensities(log: Log, given: Any = None) -> Propensities:
    """Return the probabilities that a log was drawn with: from its columns, as given, or from frequencies; checked."""
    if given is None:
        return read_propensities(log)
    if isinstance(given, str) and given == FREQUENCIES:
        counts = np.array([(log.actions == index).sum() for index in range(len(log.problem.action_names))])
        shares, source = counts / max(int(counts.sum()), 1), "frequencies of the actions in the log"
    elif isinstance(given, Mapping):
        shares, source = log.parse_shares(given, "propensity", InvalidOutcome), "as given, by action"
    elif isinstance(given, str):
        rule = "a number, a mapping from actions to shares, or 'frequencies'"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "propensity", given, rule)
    else:
        shares = compute_uniform_shares(log, check_number(given, "propensity", InvalidOutcome))
        source = "as given, for every action"
    check_range(shares, "propensity")
    if shares.sum() > 1.0 + SUM_TOLERANCE or (not has_other_actions(log) and shares.sum() < 1.0 - SUM_TOLERANCE):
        raise InvalidOutcome.must_be(ErrorCode.INVALID_PROBABILITY, "the sum of propensity", float(shares.sum()), "1")
    logged = np.where(log.actions == UNKNOWN_ACTION, np.nan, shares[log.actions])
    check_possible(log, logged)
    all_actions = np.broadcast_to(shares, (log.rows, shares.size))
    return Propensities(logged, all_actions, source, is_estimated=isinstance(given, str))


def read_propensities(log: Log) -> Propensities:
    """Return the probabilities in the log's columns."""
    all_actions, logged = log.probabilities, log.propensities
    if all_actions is None and logged is None:
        raise InvalidOutcome(
            ErrorCode.PROPENSITY_MISSING,
            "the log has no propensities, the probabilities of the logged actions; evaluation needs columns "
            "'probability.ACTION' or 'propensity', or for a randomised trial propensity=0.25 or {{'offer': 0.5, ...}}; "
            "propensity='frequencies' takes how often each action was played, for a trial whose shares were lost",
        )
    known, is_closed = log.actions != UNKNOWN_ACTION, not has_other_actions(log)
    if all_actions is not None:
        check_range(all_actions, "probability")
        sums = all_actions.sum(axis=1)
        wrong = np.flatnonzero((sums > 1.0 + SUM_TOLERANCE) | ((sums < 1.0 - SUM_TOLERANCE) & is_closed))
        if wrong.size:
            template = (
                "the probabilities of row {wrong} sum to {sums:g}, and those of {size:,} rows "
                "do not sum to 1; every row needs the probabilities of all actions"
            )
            data = {"wrong": wrong[0], "sums": sums[wrong[0]], "size": wrong.size}
            raise InvalidOutcome(ErrorCode.INVALID_PROBABILITY, template, **data)
        taken = np.where(known, all_actions[np.arange(log.rows), log.actions], np.nan)
        if logged is not None:
            for row in np.flatnonzero(known & ~(np.abs(taken - logged) <= SUM_TOLERANCE)).tolist():
                own, other = f"the propensity of row {row}", "the probability of its action"
                raise InvalidOutcome.must_agree(ErrorCode.INVALID_PROBABILITY, own, logged[row], other, taken[row])
        logged = taken
    assert logged is not None
    check_range(logged[known], "propensity")
    check_possible(log, logged)
    if all_actions is None and len(log.problem.action_names) == 2 and is_closed:  # the other is the complement
        all_actions = np.where(log.actions[:, None] == np.arange(2), logged[:, None], 1.0 - logged[:, None])
    return Propensities(logged, all_actions, "the log's own columns")


def has_other_actions(log: Log) -> bool:
    """Say whether the log may have drawn actions that are not in the problem: it has some, or several versions."""
    versions = np.asarray(log.arrays.get("version", ())).tolist()
    known = list_unique_names(versions, "the column 'version'", InvalidOutcome)
    return bool((log.actions == UNKNOWN_ACTION).any()) or len(known) > 1


def check_range(values: Floats, what: str) -> None:
    """Reject values that are not probabilities."""
    if np.isnan(values).any():
        count = int(np.isnan(values).any(axis=1).sum() if values.ndim > 1 else np.isnan(values).sum())
        template = (
            "the log lacks the {what} in {count:,} rows; every row needs one, since dropping these rows would bias "
            "the estimate"
        )
        raise InvalidOutcome(ErrorCode.PROPENSITY_MISSING, template, what=what, count=count)
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    if low < 0.0 or high > 1.0 + 1e-9:
        wrong = float(low if low < 0.0 else high)
        percent = "; 25 percent are 0.25" if 1.0 < wrong <= 100.0 else ""
        rule = f"between 0 and 1{percent}"
        raise InvalidOutcome.must_be(ErrorCode.INVALID_PROBABILITY, f"a {what} of the log", wrong, rule)


def check_possible(log: Log, logged: Floats) -> None:
    """Reject a log that took an action whose probability is 0."""
    impossible = np.flatnonzero((log.actions != UNKNOWN_ACTION) & ~(logged > 0.0))
    if impossible.size:
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "row {impossible} played {action_names!r}, whose logged "
            "probability is 0, as in {size:,} rows in all; a played action has a probability above 0",
            impossible=impossible[0],
            action_names=log.problem.action_names[log.actions[impossible[0]]],
            size=impossible.size,
        )


def compute_uniform_shares(log: Log, share: float) -> Floats:
    """Return the shares (K,) of a trial with equal shares, of all actions or of those that the log plays."""
    played = np.array([(log.actions == index).any() for index in range(len(log.problem.action_names))])
    for taken in (np.ones_like(played), played):
        if abs(share * int(taken.sum()) - 1.0) <= SUM_TOLERANCE:
            return np.where(taken, 1.0 / taken.sum(), 0.0)
    rule = (
        f"1 divided by the number of actions, of which the log plays {played.sum()} of {played.size}; otherwise give "
        f"each share, as propensity={{'{log.problem.action_names[0]}': 0.5, ...}}"
    )
    raise InvalidOutcome.must_be(ErrorCode.INVALID_PROBABILITY, "propensity", share, rule)


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a candidate, each at most `bound`, and the part of it that the log does not support."""

    values: Floats
    """wₜ = min(π(aₜ|xₜ) / pₜ(aₜ|xₜ), W), for each row (n,)."""
    covered_mass: Floats | None
    """min(π(a|xₜ), W pₜ(a|xₜ)) (n, K): the part of the candidate that the log supports; None: unknown."""
    lost_mass: Floats
    """1 − Σₐ covered_mass (n,): the part that it does not support."""
    unsupported: Floats
    """The share (K,) of the candidate by action that the log could not have taken."""
    bound: float
    """W, which no weight exceeds."""
    excess: float
    """An upper bound of w (1 − p), by which a term may leave the range of the outcomes."""
    source: str
    """Where the bound comes from."""
    complete: bool = True
    """Whether the log has the probability of every action; otherwise intervals use neither bound nor covered_mass."""
    is_estimated: bool = False
    """Whether the probabilities were estimated from the log, so that no interval is certain."""

    @property
    def clipped(self) -> float:
        """The share of the candidate that is lost by clipping."""
        return max(float(self.lost_mass.mean()) - float(self.unsupported.sum()), 0.0)

    @property
    def effective_sample_size(self) -> float:
        """(Σ w)² / Σ w² (Kish 1965)."""
        squares = float((self.values**2).sum())
        return float(self.values.sum()) ** 2 / squares if squares > 0.0 else 0.0

    def get_ranges(self, regression: bool) -> tuple[float, float]:
        """Return the ranges below and above: no term is farther from a guess in [0, 1] on that side."""
        if not self.complete:
            return 1.0, 1.0
        if regression:
            return 1.0 + self.excess, 1.0 + self.excess
        return 1.0, self.bound if not self.lost_mass.any() else 1.0 + self.excess

    def take(self, rows: Any) -> "Weights":
        """Return the weights of some rows, with the same bound."""
        covered = None if self.covered_mass is None else self.covered_mass[rows]
        return replace(self, values=self.values[rows], covered_mass=covered, lost_mass=self.lost_mass[rows])


def build_logging_weights(log: Log) -> Weights:
    """Return the weights of the log's own policy, which are all 1."""
    zeros = np.zeros(len(log.problem.action_names))
    return Weights(np.ones(log.rows), None, np.zeros(log.rows), zeros, 1.0, 1.0, LOGGING_POLICY)


def compute_weights(
    log: Log, propensities: Propensities, candidate: Floats, alpha: float, bound: float | None = None
) -> Weights:
    """Return the weights of a candidate (n, K), clipped at a bound if one is given or if they are too large."""
    given = None if bound is None else check_positive(bound, "weight_bound")
    if given is not None and given < 1.0:
        rule = "at least 1, since weights average 1"
        raise InvalidOutcome.must_be(ErrorCode.OUT_OF_RANGE, "weight_bound", given, rule)
    if propensities.all_actions is None:
        return compute_partial_weights(log, propensities, candidate, given)
    all_actions = propensities.all_actions
    ratios = np.divide(candidate, all_actions, out=np.zeros_like(candidate), where=all_actions > 0.0)
    largest = max(float(ratios.max()), 1.0)
    limit, source = choose_bound(given, largest, all_actions, candidate, alpha)
    clips = largest > limit * (1.0 + ROUNDING)
    covered = np.minimum(candidate, limit * all_actions) if clips else np.where(all_actions > 0.0, candidate, 0.0)
    known = log.actions != UNKNOWN_ACTION
    values = np.where(known, np.minimum(ratios[np.arange(log.rows), log.actions], limit), 0.0)
    excess = limit if given is not None else float((np.minimum(ratios, limit) * (1.0 - all_actions)).max())
    unsupported, lost = np.where(all_actions > 0.0, 0.0, candidate).mean(axis=0), compute_lost_mass(covered)
    return Weights(values, covered, lost, unsupported, limit, excess, source, is_estimated=propensities.is_estimated)


def compute_lost_mass(covered: Floats) -> Floats:
    """Return the mass (n,) that is not covered (n, K)."""
    lost = np.maximum(1.0 - covered.sum(axis=1), 0.0)
    lost[lost < ROUNDING] = 0.0
    return np.asarray(lost)


def choose_bound(
    given: float | None, largest: float, all_actions: Floats, candidate: Floats, alpha: float
) -> tuple[float, str]:
    """Return the bound on the weights and where it comes from; it does not depend on outcomes."""
    if given is not None:
        return given, "as given"
    price = np.log(2.0 / alpha) / len(candidate)  # width of an interval per unit of the bound
    best, lowest_cost, limit = largest, largest * price, largest
    supported = np.where(all_actions > 0.0, candidate, 0.0)
    while largest * price > MAX_BOUND_COST and (limit := 0.5 * limit) >= 1.0:
        loss = float(np.maximum(supported - limit * all_actions, 0.0).sum(axis=1).mean())
        if loss <= NEGLIGIBLE_MASS and limit * price + loss < lowest_cost:
            best, lowest_cost = limit, limit * price + loss
    if best < largest:
        return best, "clipped: larger weights would widen the interval more than they inform"
    return best, "the largest that the log's probabilities allow"


def compute_partial_weights(log: Log, propensities: Propensities, candidate: Floats, given: float | None) -> Weights:
    """Return weights if only the probability of the action taken is known.

    What else could have been drawn is known only in rows with a probability of 1.
    """
    known, rows = log.actions != UNKNOWN_ACTION, np.arange(log.rows)
    ratios = np.where(known, candidate[rows, log.actions] / np.where(known, propensities.logged, 1.0), 0.0)
    largest = max(float(ratios.max()), 1.0)
    if given is not None and largest > given:
        template = (
            "weight_bound is {given:g}, and a row has weight {largest:g}; the bias of clipping can be bounded only "
            "if the log has every action's probability, in columns 'probability.ACTION'"
        )
        raise InvalidOutcome(ErrorCode.PROPENSITY_MISSING, template, given=given, largest=largest)
    indices = np.arange(candidate.shape[1])
    is_certain = known & (propensities.logged >= 1.0 - ROUNDING)
    never = ~np.isin(indices, log.actions) | (is_certain[:, None] & (log.actions[:, None] != indices))
    covered, unsupported = np.where(never, 0.0, candidate), np.where(never, candidate, 0.0).mean(axis=0)
    limit, source = (largest, "the largest that occurred") if given is None else (given, "as given")
    return Weights(ratios, covered, compute_lost_mass(covered), unsupported, limit, limit, source, complete=False)


class Balance(NamedTuple):
    """The mean weight of some rows, with its interval (docs/theory/evaluation.md, Lemma 4).

    Weights average 1 if the rows were drawn with the given probabilities.
    """

    mean: float
    low: float
    high: float
    complete: bool
    """Whether the log has the probability of every action; then a low mean is a contradiction too."""

    @classmethod
    def of(cls, weights: Weights, alpha: float, ordered: bool = True) -> "Balance":
        """Return the balance of some rows at 1 − α; `ordered`: they are in the order of the decisions."""

        def compute_margin(terms: Floats, room: float) -> float:
            return float(compute_radius(terms, room, 0.5 * alpha, np.array([terms.size]), ordered)[0])

        complete = weights.values + weights.lost_mass
        lower = complete if weights.complete else weights.values  # what was never drawn may have been possible
        low = float(lower.mean()) - compute_margin(lower, 1.0)
        high = float(complete.mean()) + compute_margin(1.0 - complete, 1.0 + weights.excess)
        return cls(float(complete.mean()), low, high, weights.complete)

    @property
    def is_balanced(self) -> bool:
        """Whether an estimate may be given."""
        return self.low <= 1.0 + NEGLIGIBLE_MASS and self.high >= 1.0 - NEGLIGIBLE_MASS

    @property
    def contradicted(self) -> bool:
        """Whether the log cannot have been drawn with these probabilities, so that no interval holds."""
        return not self.is_balanced and (self.complete or self.low > 1.0 + NEGLIGIBLE_MASS)

    @property
    def note_code(self) -> NoteCode:
        """The code of the note on weights that are not balanced."""
        return NoteCode.WEIGHTS_CONTRADICT if self.contradicted else NoteCode.WEIGHTS_UNBALANCED


REPLICA_NAME = "candidate"  # name of the replica that decides, which has its own random numbers


def resolve_candidate(given: Any, log: Log, kept: Flags) -> tuple[str, Floats]:
    """Return a candidate's name, and its probabilities (n, K); rows must have the context that it uses.

    `kept` are the rows of the original log that these are; probabilities as an array are for all original rows.
    """
    if isinstance(given, str | Path):
        name, values = resolve_named_candidate(given, log)
    elif isinstance(given, Problem):
        name, values = "the problem's own policy at its start", compute_agent_probabilities(Agent(given), log)
    elif isinstance(given, Agent):
        name, values = "the agent", compute_agent_probabilities(given, log)
    elif isinstance(given, Mapping):
        values = log.parse_shares(given, "the candidate", InvalidActions)
        shares = [(share, name) for name, share in given.items() if isinstance(share, int | float) and share]
        name = " + ".join(f"{share:g} {action}" for share, action in shares)
    elif callable(given):
        title = str(getattr(given, "__name__", "")).strip("<>")
        name = title if title not in ("", "lambda") else "the function"
        values = compute_function_probabilities(given, log)
    else:
        name, values = "the candidate", check_array(given, "the candidate", InvalidOutcome)
        values = values[kept] if values.ndim == 2 and len(values) == kept.size else values
    return name, np.broadcast_to(check_probabilities(values, log), get_shape(log))


def needs_context(given: Any, log: Log) -> bool:
    """Say whether a candidate uses the context."""
    is_file = isinstance(given, str | Path) and str(given).endswith(".json") and given not in log.problem.action_names
    return is_file or isinstance(given, Problem | Agent) or (callable(given) and not hasattr(given, "__array__"))


def get_shape(log: Log) -> tuple[int, int]:
    return log.rows, len(log.problem.action_names)


def resolve_named_candidate(given: str | Path, log: Log) -> tuple[str, Floats]:
    """Return an action that is always taken, a saved agent, or the probabilities in columns."""
    text, names = str(given), list(log.problem.action_names)
    if text in names:
        return f"always {text}", np.eye(len(names))[names.index(text)]
    if text.endswith(".json"):
        return Path(text).name, compute_agent_probabilities(Agent.load(given), log)
    listed = list_column_names(log.columns, InvalidOutcome)
    for prefix in (f"{text}.", text):
        columns = [f"{prefix}{name}" for name in names]
        if all(column in listed for column in columns):
            values = [get_numeric_column(log.columns, one, "the candidate", InvalidOutcome) for one in columns]
            return text, np.column_stack(values)
    template = (
        "the candidate {text} is not an action, not an agent file (.json) and not a prefix of "
        "probability columns such as {value}{text_2}"
    )
    data = {"text": safe_repr(text), "value": safe_repr(f"{text}.{names[0]}"), "text_2": suggest_name(text, names)}
    raise InvalidActions(ErrorCode.UNKNOWN_NAME, template, **data)


def check_probabilities(values: Floats, log: Log) -> Floats:
    """Return probabilities (n, K) or (K,) of a candidate that add up to 1, exactly."""
    if values.shape not in (get_shape(log), get_shape(log)[1:]):
        rule = f"{get_shape(log)}: a probability of each action in each row"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_SHAPE, "the shape of the candidate", values.shape, rule)
    sums = np.atleast_1d(values.sum(axis=-1))
    percent = "; 25 percent are 0.25" if np.all(np.abs(sums - 100.0) < 1.0) else ""
    wrong = values[(values < 0.0) | (values > 1.0 + SUM_TOLERANCE)]
    if wrong.size:
        rule = f"between 0 and 1{percent}"
        raise InvalidOutcome.must_be(
            ErrorCode.INVALID_PROBABILITY, "a probability of the candidate", float(wrong[0]), rule
        )
    off = sums[np.abs(sums - 1.0) > SUM_TOLERANCE]
    if off.size:
        what = "the sum of the candidate's probabilities in a row"
        raise InvalidOutcome.must_be(ErrorCode.INVALID_PROBABILITY, what, float(off[0]), f"1{percent}")
    return np.asarray(values / values.sum(axis=-1)[..., None], dtype=np.float64)


def iterate_contexts(log: Log) -> Iterator[dict[str, Any]]:
    """Yield the context of every row by name, in its own units."""
    names = [*log.problem.numbers, *log.scores, *log.segments]
    columns = [*log.numbers.T.tolist(), *(one.tolist() for one in (*log.scores.values(), *log.segments.values()))]
    for row in zip(*columns, strict=True) if names else iter([()] * log.rows):
        yield dict(zip(names, row, strict=True))


def compute_agent_probabilities(agent: Agent, log: Log) -> Floats:
    """Return an agent's probabilities in every row, without learning."""
    problem = getattr(agent.policy, "problem", None)
    if problem is None or list(problem.action_names) != list(log.problem.action_names):
        theirs = "none by name" if problem is None else safe_repr(list(problem.action_names))
        template = "the agent has the actions {theirs}, and the problem has {action_names}; they must be the same"
        data = {"theirs": theirs, "action_names": safe_repr(list(log.problem.action_names))}
        raise InvalidActions(ErrorCode.PROBLEM_MISMATCH, template, **data)
    replica: Any = Replica(agent.replica_snapshot(), REPLICA_NAME)
    rows = [list(replica.decide(context or None).probabilities.values()) for context in iterate_contexts(log)]
    return np.array(rows, dtype=np.float64).reshape(get_shape(log))


def compute_function_probabilities(function: Callable[[dict[str, Any]], Any], log: Log) -> Floats:
    """Return a function's probabilities in every row; it returns an action's name, or probabilities by name."""
    probabilities = np.zeros(get_shape(log))
    indices = {name: index for index, name in enumerate(log.problem.action_names)}
    for row, context in enumerate(iterate_contexts(log)):
        try:
            result = function(dict(context))
        except Exception as error:  # the caller's code may raise anything
            template = "the candidate failed at the context {context}: {error}"
            data = {"context": safe_repr(context), "error": safe_repr(str(error))}
            raise InvalidActions(ErrorCode.CALLBACK_FAILED, template, **data) from None
        if isinstance(result, str) and result in indices:
            probabilities[row, indices[result]] = 1.0
        elif isinstance(result, Mapping):
            probabilities[row] = log.parse_shares(result, "the candidate", InvalidActions)
        else:
            rule = f"an action's name, or probabilities by name; the context is {safe_repr(context)}"
            raise InvalidActions.must_be(ErrorCode.CALLBACK_FAILED, "the result of the candidate", result, rule)
    return probabilities
