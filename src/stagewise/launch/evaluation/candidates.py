"""Resolve a candidate, in any of its forms, to the probabilities of its actions in every row. It does not learn."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.agent.agent import Agent
from stagewise.agent.replica import Replica
from stagewise.engine.compile import Flags, Floats
from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.propensities import SUM_TOLERANCE
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_array
from stagewise.problem.columns import get_numeric_column, list_column_names
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name

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
