"""Named costs: a world with named costs is played under limits of these names, in any order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.problem.checks import Floats, check_array, check_mapping, check_name, check_per_signal, order_by_name
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr, suggest_name, suggest_percent

Names = tuple[str, ...]
DEFAULT_NOISE = 0.1  # standard deviation of gaussian outcomes


def parse_costs(value: Any) -> tuple[Floats, Names]:
    """Return the costs of a world, and their names where they are given by name; else none.

    >>> parse_costs({"opt_out": [0.0, 0.1], "complaint": [0.0, 0.2]})
    (array([[0. , 0.1],
           [0. , 0.2]]), ('opt_out', 'complaint'))
    """
    if not isinstance(value, Mapping):
        return check_array(value, "cost"), ()
    given = check_mapping(value, "cost")
    names = tuple(check_name(name, "the name of a cost") for name in given)
    if not names or "reward" in names:
        raise InvalidProblem(
            ErrorCode.DUPLICATE_NAME,
            "cost has the names {names}; every cost needs a unique name other than 'reward'",
            names=join_names(names),
        )
    rows = [check_array(given[name], f"the cost {name!r}") for name in names]
    if len({row.shape for row in rows}) > 1:
        shapes = ", ".join(f"{name!r} {row.shape}" for name, row in zip(names, rows, strict=True))
        raise InvalidProblem(ErrorCode.WRONG_SHAPE, "the costs have shapes {shapes}; they must agree", shapes=shapes)
    return np.stack(rows), names


def parse_means(reward: Any, cost: Any, over: str) -> tuple[Floats, Names]:
    """Return the rows (1 + m, …) of the reward and every cost, and the costs' names; `over` names the other axes.

    >>> parse_means([0.1, 0.7], [0.0, 0.2], "K")
    (array([[0.1, 0.7],
           [0. , 0.2]]), ())
    """
    (costs, names), rewards, axes = parse_costs(cost), check_array(reward, "reward"), over.count(",") + 1
    costs = np.atleast_1d(costs)[np.newaxis] if costs.ndim <= axes else costs
    if rewards.ndim != axes or rewards.size == 0 or costs.shape[1:] != rewards.shape:
        shape = over if axes > 1 else f"{over},"
        raise InvalidProblem(
            ErrorCode.WRONG_SHAPE,
            "reward has shape {shape} and cost has {shape_2}; they must be ({shape_3}) and (m, {over})",
            shape=rewards.shape,
            shape_2=costs.shape,
            shape_3=shape,
            over=over,
        )
    return np.concatenate([rewards[np.newaxis], costs]), names


def order_by_signal(value: Any, names: Names, what: str) -> Any:
    """Return values given by name in the order of the reward and the costs; others unchanged."""
    return order_by_name(value, ("reward", *names), what) if isinstance(value, Mapping) else value


def parse_noise(value: Any, signals: Sequence[str], names: Names, outcomes: str) -> Floats:
    """Return the scale (1 + m,) of the noise of each signal; 0.1 by default. An unused noise is rejected."""
    if value is not None and outcomes == "bernoulli":
        raise InvalidProblem(
            ErrorCode.UNUSED_SETTING,
            "noise is {value} and outcomes are 'bernoulli', which use no noise; leave noise out, or "
            "choose other outcomes",
            value=safe_repr(value),
        )
    return check_per_signal(
        order_by_signal(DEFAULT_NOISE if value is None else value, names, "noise"), signals, "noise"
    )


def encode_costs(values: Any, names: Names) -> Any:
    """Return rows as JSON holds them, by name if they have names."""
    rows = values.tolist()
    return dict(zip(names, rows, strict=True)) if names else rows


def encode_signals(values: Any, names: Names) -> Any:
    """Return the rows of the reward and the costs as JSON holds them, by name if costs have names."""
    return encode_costs(values, ("reward", *names) if names else ())


def get_cost_order(own: Names, asked: Names) -> list[int]:
    """Return where the costs of these names stand among a world's own.

    >>> get_cost_order(("opt_out", "complaint"), ("complaint", "opt_out"))
    [1, 0]
    """
    for name in (*own, *asked):
        if name not in own or name not in asked:
            here, there, others = ("world", "limit", asked) if name in own else ("policy", "cost", own)
            thing = "cost" if name in own else "limit"
            near = suggest_name(name, others)
            raise InvalidProblem(
                ErrorCode.WORLD_MISMATCH,
                "the {here} has a {thing} {name}, which the {there} does not have; it has {others}{near}",
                here=here,
                thing=thing,
                name=safe_repr(name),
                there=there,
                others=join_names(others),
                near=near,
            )
    return [own.index(name) for name in asked]


def check_probabilities(low: Floats, high: Floats, signals: Sequence[str], outcomes: str, slight: float = 0.0) -> None:
    """Raise if means are outside [0, 1]; `low` and `high` are the smallest and largest of every signal."""
    for name, least, most in zip(signals, low.tolist(), high.tolist(), strict=True):
        if not (least >= -slight and most <= 1.0 + slight):
            wrong = most if most > 1.0 + slight else least
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "means of {name!r} lie in [{least:g}, {most:g}]; {outcomes} needs them in [0, 1]{wrong}",
                name=name,
                least=least,
                most=most,
                outcomes=outcomes,
                wrong=suggest_percent(wrong),
            )
