"""What a candidate would do in every row of a log, whatever form it is given in; it never learns meanwhile."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.launch.evaluation.propensities import ROUNDED
from stagewise.launch.log import Log
from stagewise.policies.agent.agent import Agent
from stagewise.policies.agent.replica import Replica
from stagewise.policies.problem import Problem
from stagewise.problem.checks import array
from stagewise.problem.columns import listed_names, numbers_in
from stagewise.problem.errors import InvalidActions, InvalidOutcome
from stagewise.problem.words import nearest, shown

FROZEN = "candidate"  # the name of the replica that decides: its random numbers are its own


class Candidate(NamedTuple):
    """A policy, as a log's rows see it."""

    name: str
    probabilities: Floats  # (n, K)


def candidate_of(given: Any, log: Log, kept: Flags) -> Candidate:
    """Return what a candidate does in every row (n,) of a log; all rows must have a whole context where it looks.

    `kept` says which rows of the log that was given these are: probabilities are given for all of them.
    """
    if isinstance(given, str | Path):
        return named(given, log)
    if isinstance(given, Problem):
        return Candidate("the problem's own policy at its start", decided(Agent(given), log))
    if isinstance(given, Agent):
        return Candidate("the agent", decided(given, log))
    if isinstance(given, Mapping):
        values = checked(log.shares(given, "the candidate", InvalidActions), log)
        return Candidate(in_words(given), np.broadcast_to(values, table(log)))
    if callable(given):
        title = str(getattr(given, "__name__", "")).strip("<>")
        return Candidate(title if title not in ("", "lambda") else "the function", asked(given, log))
    values = array(given, "the candidate", InvalidOutcome)
    values = checked(values[kept] if values.ndim == 2 and len(values) == kept.size else values, log)
    return Candidate("the candidate", np.broadcast_to(values, table(log)))


def looks(given: Any, log: Log) -> bool:
    """Say whether a candidate decides by the context, so that it needs all of it."""
    saved = isinstance(given, str | Path) and str(given).endswith(".json") and given not in log.problem.actions
    return saved or isinstance(given, Problem | Agent) or (callable(given) and not hasattr(given, "__array__"))


def table(log: Log) -> tuple[int, int]:
    """Return the shape of all probabilities."""
    return log.rows, len(log.problem.actions)


def named(given: str | Path, log: Log) -> Candidate:
    """Return an action that is always taken, a saved agent, or what columns say."""
    text, names = str(given), list(log.problem.actions)
    if text in names:
        always = np.zeros(len(names))
        always[names.index(text)] = 1.0
        return Candidate(f"always {text}", np.broadcast_to(always, table(log)))
    if text.endswith(".json"):
        return Candidate(Path(text).name, decided(Agent.load(given), log))
    listed = listed_names(log.columns, InvalidOutcome)
    for prefix in (f"{text}.", text):
        if all(f"{prefix}{name}" in listed for name in names):
            columns = [numbers_in(log.columns, f"{prefix}{name}", "the candidate", InvalidOutcome) for name in names]
            return Candidate(text, checked(np.column_stack(columns), log))
    raise InvalidActions(
        f"the candidate {shown(text)} is no action, no file of an agent (.json), and no prefix of columns for all "
        f"actions, such as {shown(f'{text}.{names[0]}')}{nearest(text, names)}"
    )


def in_words(given: Mapping[Any, Any]) -> str:
    """Return shares as a short name."""
    return " + ".join(f"{share:g} {name}" for name, share in given.items() if isinstance(share, int | float) and share)


def checked(values: Floats, log: Log) -> Floats:
    """Return probabilities (n, K) or (K,) of a candidate that add up to 1, exactly."""
    if values.shape not in (table(log), table(log)[1:]):
        raise InvalidOutcome(
            f"the candidate has the shape {values.shape}; it must give {len(log.problem.actions)} actions a "
            f"probability in each of {log.rows:,} rows"
        )
    sums = values.sum(axis=-1)
    percent = "; 25 percent are 0.25" if np.all(np.abs(sums - 100.0) < 1.0) else ""
    if values.size and (values.min() < 0.0 or values.max() > 1.0 + ROUNDED):
        wrong = values.min() if values.min() < 0.0 else values.max()
        raise InvalidOutcome(f"the candidate has a probability of {wrong:g}; it must lie between 0 and 1{percent}")
    off = np.atleast_1d(sums)[np.abs(np.atleast_1d(sums) - 1.0) > ROUNDED]
    if off.size:
        raise InvalidOutcome(f"the candidate's probabilities add up to {off[0]:g} in a row; they must to 1{percent}")
    return np.asarray(values / sums[..., None], dtype=np.float64)


def contexts(log: Log) -> Iterator[dict[str, Any]]:
    """Give the context of every row by name, in its own units."""
    names = [*log.problem.context, *log.problem.divisions]
    columns = [*log.numbers.T.tolist(), *(texts.tolist() for texts in log.segments.values())]
    for row in zip(*columns, strict=True) if names else iter([()] * log.rows):
        yield dict(zip(names, row, strict=True))


def decided(agent: Agent, log: Log) -> Floats:
    """Return what an agent would draw from in every row, by what it knows now."""
    problem = getattr(agent.policy, "problem", None)
    if problem is None or list(problem.actions) != list(log.problem.actions):
        theirs = "none by name" if problem is None else shown(list(problem.actions))
        raise InvalidActions(
            f"the agent has other actions than the problem: {theirs}, and not {shown(list(log.problem.actions))}"
        )
    replica: Any = Replica(agent.snapshot(), FROZEN)
    drawn = [list(replica.decide(context or None).probabilities.values()) for context in contexts(log)]
    return checked(np.array(drawn, dtype=np.float64).reshape(table(log)), log)


def answered(function: Callable[[dict[str, Any]], Any], context: dict[str, Any]) -> Any:
    """Return what a function says of a context; where it fails, say at which."""
    try:
        return function(dict(context))
    except Exception as error:  # whatever somebody's own code comes to
        raise InvalidActions(f"the candidate failed at the context {shown(context)}: {shown(str(error))}") from None


def asked(function: Callable[[dict[str, Any]], Any], log: Log) -> Floats:
    """Return what a function says in every row: an action's name, or probabilities by name."""
    answers = np.zeros(table(log))
    places = {name: place for place, name in enumerate(log.problem.actions)}
    for row, context in enumerate(contexts(log)):
        said = answered(function, context)
        if isinstance(said, str) and said in places:
            answers[row, places[said]] = 1.0
        elif isinstance(said, Mapping):
            answers[row] = log.shares(said, "the candidate", InvalidActions)
        else:
            raise InvalidActions(
                f"the candidate says {shown(said)} of the context {shown(context)}; it must be an action's name, or "
                "probabilities by name"
            )
    return checked(answers, log)
