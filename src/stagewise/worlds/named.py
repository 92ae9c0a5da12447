"""Costs by name: a world that knows what its costs are called is played under limits of these names, in any order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.problem.checks import Floats, array, mapping_of, one_per, shown
from stagewise.problem.declared import title
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.naming import listing
from stagewise.problem.tables import in_order
from stagewise.problem.words import nearest, percent

Names = tuple[str, ...]
USUAL = 0.1  # the standard deviation of what is gaussian, where none is given


def costs_of(value: Any) -> tuple[Floats, Names]:
    """Return the costs of a world, and their names where they are given by name; else none.

    >>> costs_of({"opt_out": [0.0, 0.1], "complaint": [0.0, 0.2]})
    (array([[0. , 0.1],
           [0. , 0.2]]), ('opt_out', 'complaint'))
    """
    if not isinstance(value, Mapping):
        return array(value, "cost"), ()
    given = mapping_of(value, "cost")
    names = tuple(title(name, "the name of a cost") for name in given)
    if not names or "reward" in names:
        raise InvalidProblem(f"cost names {listing(names)}; it needs a name for each cost, and 'reward' is taken")
    rows = [array(given[name], f"the cost {name!r}") for name in names]
    if len({row.shape for row in rows}) > 1:
        shapes = ", ".join(f"{name!r} {row.shape}" for name, row in zip(names, rows, strict=True))
        raise InvalidProblem(f"the costs have shapes {shapes}; they must agree")
    return np.stack(rows), names


def truth_of(reward: Any, cost: Any, over: str) -> tuple[Floats, Names]:
    """Return the rows (1 + m, …) of the reward and every cost, and the costs' names; `over` names the other axes.

    >>> truth_of([0.1, 0.7], [0.0, 0.2], "K")
    (array([[0.1, 0.7],
           [0. , 0.2]]), ())
    """
    (costs, names), rewards, axes = costs_of(cost), array(reward, "reward"), over.count(",") + 1
    costs = np.atleast_1d(costs)[np.newaxis] if costs.ndim <= axes else costs
    if rewards.ndim != axes or rewards.size == 0 or costs.shape[1:] != rewards.shape:
        shape = over if axes > 1 else f"{over},"
        raise InvalidProblem(
            f"reward has shape {rewards.shape} and cost {costs.shape}; they must be ({shape}) and (m, {over})"
        )
    return np.concatenate([rewards[np.newaxis], costs]), names


def by_signal(value: Any, names: Names, what: str) -> Any:
    """Return what is given for the reward and each cost by name in their order, and anything else as it is."""
    return in_order(value, ("reward", *names), what) if isinstance(value, Mapping) else value


def noise_of(value: Any, signals: Sequence[str], names: Names, outcomes: str) -> Floats:
    """Return the scale (1 + m,) of each signal's noise; None: the usual one. What nobody would read is refused."""
    if value is not None and outcomes == "bernoulli":
        raise InvalidProblem(
            f"noise is {shown(value)} and outcomes are bernoulli, zeros and ones, for which no noise is read; leave "
            "it out, or name other outcomes"
        )
    return one_per(by_signal(USUAL if value is None else value, names, "noise"), signals, "noise")


def plain_costs(values: Any, names: Names) -> Any:
    """Return rows as plain values: by name where they have names."""
    rows = values.tolist()
    return dict(zip(names, rows, strict=True)) if names else rows


def plain_signals(values: Any, names: Names) -> Any:
    """Return the rows of the reward and every cost as plain values: by name where costs have names."""
    return plain_costs(values, ("reward", *names) if names else ())


def order_of(own: Names, asked: Names) -> list[int]:
    """Return where the costs of these names stand among a world's own.

    >>> order_of(("opt_out", "complaint"), ("complaint", "opt_out"))
    [1, 0]
    """
    for name in (*own, *asked):
        if name not in own or name not in asked:
            here, there, others = ("world", "limit", asked) if name in own else ("policy", "cost", own)
            thing = "cost" if name in own else "limit"
            near = nearest(name, others)
            raise InvalidProblem(
                f"the {here} has a {thing} {shown(name)}, and there is no {there} of that name: they are "
                f"{listing(others)}{near}"
            )
    return [own.index(name) for name in asked]


def check_probabilities(low: Floats, high: Floats, signals: Sequence[str], outcomes: str, slight: float = 0.0) -> None:
    """Refuse means that no outcome in [0, 1] can have; `low` and `high` are the ends of those of every signal."""
    for name, least, most in zip(signals, low.tolist(), high.tolist(), strict=True):
        if not (least >= -slight and most <= 1.0 + slight):
            wrong = most if most > 1.0 + slight else least
            raise InvalidProblem(
                f"means of {name!r} lie in [{least:g}, {most:g}]; {outcomes} needs them in [0, 1]{percent(wrong)}"
            )
