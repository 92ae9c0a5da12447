"""Resolve a candidate, in any of its forms, to the probabilities of its actions in every row. It does not learn."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.agent import Agent
from stagewise.agent.replica import Replica
from stagewise.engine.compile import Flags, Floats
from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.logging_propensities import SUM_TOLERANCE
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_array
from stagewise.problem.columns import get_numeric_column, list_column_names
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name

REPLICA_NAME = "candidate"  # name of the replica that decides, which has its own random numbers


class Candidate(NamedTuple):
    """A policy with its probabilities in every row."""

    name: str
    probabilities: Floats  # (n, K)


def resolve_candidate(given: Any, log: Log, kept: Flags) -> Candidate:
    """Return a candidate's probabilities in every row (n,) of a log; rows must have the context that it uses.

    `kept` are the rows of the original log that these are; probabilities as an array are for all original rows.
    """
    if isinstance(given, str | Path):
        return resolve_named_candidate(given, log)
    if isinstance(given, Problem):
        return Candidate("the problem's own policy at its start", compute_agent_probabilities(Agent(given), log))
    if isinstance(given, Agent):
        return Candidate("the agent", compute_agent_probabilities(given, log))
    if isinstance(given, Mapping):
        values = check_probabilities(log.parse_shares(given, "the candidate", InvalidActions), log)
        return Candidate(describe_shares(given), np.broadcast_to(values, get_shape(log)))
    if callable(given):
        title = str(getattr(given, "__name__", "")).strip("<>")
        return Candidate(
            title if title not in ("", "lambda") else "the function", compute_function_probabilities(given, log)
        )
    values = check_array(given, "the candidate", InvalidOutcome)
    values = check_probabilities(values[kept] if values.ndim == 2 and len(values) == kept.size else values, log)
    return Candidate("the candidate", np.broadcast_to(values, get_shape(log)))


def needs_context(given: Any, log: Log) -> bool:
    """Say whether a candidate uses the context."""
    is_file = isinstance(given, str | Path) and str(given).endswith(".json") and given not in log.problem.actions
    return is_file or isinstance(given, Problem | Agent) or (callable(given) and not hasattr(given, "__array__"))


def get_shape(log: Log) -> tuple[int, int]:
    """Return the shape of all probabilities."""
    return log.rows, len(log.problem.actions)


def resolve_named_candidate(given: str | Path, log: Log) -> Candidate:
    """Return an action that is always taken, a saved agent, or the probabilities in columns."""
    text, names = str(given), list(log.problem.actions)
    if text in names:
        always = np.zeros(len(names))
        always[names.index(text)] = 1.0
        return Candidate(f"always {text}", np.broadcast_to(always, get_shape(log)))
    if text.endswith(".json"):
        return Candidate(Path(text).name, compute_agent_probabilities(Agent.load(given), log))
    listed = list_column_names(log.columns, InvalidOutcome)
    for prefix in (f"{text}.", text):
        if all(f"{prefix}{name}" in listed for name in names):
            columns = [
                get_numeric_column(log.columns, f"{prefix}{name}", "the candidate", InvalidOutcome) for name in names
            ]
            return Candidate(text, check_probabilities(np.column_stack(columns), log))
    raise InvalidActions(
        ErrorCode.UNKNOWN_NAME,
        "the candidate {text} is not an action, not an agent file (.json) and not a prefix of "
        "probability columns such as {value}{text_2}",
        text=safe_repr(text),
        value=safe_repr(f"{text}.{names[0]}"),
        text_2=suggest_name(text, names),
    )


def describe_shares(given: Mapping[Any, Any]) -> str:
    """Return a short name for shares."""
    return " + ".join(f"{share:g} {name}" for name, share in given.items() if isinstance(share, int | float) and share)


def check_probabilities(values: Floats, log: Log) -> Floats:
    """Return probabilities (n, K) or (K,) of a candidate that add up to 1, exactly."""
    if values.shape not in (get_shape(log), get_shape(log)[1:]):
        raise InvalidOutcome(
            ErrorCode.WRONG_SHAPE,
            "the candidate has shape {shape}; it must give a probability to each of {actions_count} "
            "actions in each of {rows:,} rows",
            shape=values.shape,
            actions_count=len(log.problem.actions),
            rows=log.rows,
        )
    sums = values.sum(axis=-1)
    percent = "; 25 percent are 0.25" if np.all(np.abs(sums - 100.0) < 1.0) else ""
    if values.size and (values.min() < 0.0 or values.max() > 1.0 + SUM_TOLERANCE):
        wrong = values.min() if values.min() < 0.0 else values.max()
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "the candidate has a probability of {wrong:g}; it must lie between 0 and 1{percent}",
            wrong=wrong,
            percent=percent,
        )
    off = np.atleast_1d(sums)[np.abs(np.atleast_1d(sums) - 1.0) > SUM_TOLERANCE]
    if off.size:
        raise InvalidOutcome(
            ErrorCode.INVALID_PROBABILITY,
            "the candidate's probabilities sum to {off:g} in a row; they must sum to 1{percent}",
            off=off[0],
            percent=percent,
        )
    return np.asarray(values / sums[..., None], dtype=np.float64)


def iterate_contexts(log: Log) -> Iterator[dict[str, Any]]:
    """Yield the context of every row by name, in its own units."""
    names = [*log.problem.context, *log.problem.divisions]
    columns = [*log.numbers.T.tolist(), *(texts.tolist() for texts in log.segments.values())]
    for row in zip(*columns, strict=True) if names else iter([()] * log.rows):
        yield dict(zip(names, row, strict=True))


def compute_agent_probabilities(agent: Agent, log: Log) -> Floats:
    """Return an agent's probabilities in every row, without learning."""
    problem = getattr(agent.policy, "problem", None)
    if problem is None or list(problem.actions) != list(log.problem.actions):
        theirs = "none by name" if problem is None else safe_repr(list(problem.actions))
        raise InvalidActions(
            ErrorCode.PROBLEM_MISMATCH,
            "the agent has the actions {theirs}, and the problem has {actions}; they must be the same",
            theirs=theirs,
            actions=safe_repr(list(log.problem.actions)),
        )
    replica: Any = Replica(agent.snapshot(), REPLICA_NAME)
    rows = [list(replica.decide(context or None).probabilities.values()) for context in iterate_contexts(log)]
    return check_probabilities(np.array(rows, dtype=np.float64).reshape(get_shape(log)), log)


def call_candidate(function: Callable[[dict[str, Any]], Any], context: dict[str, Any]) -> Any:
    """Return a function's result for a context; an error names the context."""
    try:
        return function(dict(context))
    except Exception as error:  # the caller's code may raise anything
        raise InvalidActions(
            ErrorCode.CALLBACK_FAILED,
            "the candidate failed at the context {context}: {error}",
            context=safe_repr(context),
            error=safe_repr(str(error)),
        ) from None


def compute_function_probabilities(function: Callable[[dict[str, Any]], Any], log: Log) -> Floats:
    """Return a function's probabilities in every row; it returns an action's name, or probabilities by name."""
    probabilities = np.zeros(get_shape(log))
    indices = {name: index for index, name in enumerate(log.problem.actions)}
    for row, context in enumerate(iterate_contexts(log)):
        result = call_candidate(function, context)
        if isinstance(result, str) and result in indices:
            probabilities[row, indices[result]] = 1.0
        elif isinstance(result, Mapping):
            probabilities[row] = log.parse_shares(result, "the candidate", InvalidActions)
        else:
            raise InvalidActions(
                ErrorCode.CALLBACK_FAILED,
                "the candidate returned {result} for the context {context}; it must return an action's "
                "name, or probabilities by name",
                result=safe_repr(result),
                context=safe_repr(context),
            )
    return check_probabilities(probabilities, log)
