"""The base class of worlds with noisy outcomes, and costs by name: a world with named costs is played under limits of
these names, in any order.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from inspect import isabstract
from typing import Any, ClassVar, Self

import numpy as np

from stagewise.engine.loop import DIRECTIONS
from stagewise.engine.world_draws import fill_outcome
from stagewise.problem.checks import (
    Floats,
    check_array,
    check_mapping,
    check_name,
    check_per_signal,
    copy_read_only,
    order_by_name,
)
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import suggest_percent
from stagewise.problem.thresholds import build_default_names
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.worlds.world import BaseWorld, check_draw

Names = tuple[str, ...]
DEFAULT_NOISE = 0.1  # standard deviation of gaussian outcomes


class NoisyWorld(BaseWorld):
    """A world whose actions have a mean reward and m mean costs, observed with noise."""

    actions: Any  # the action set, the same in every round or drawn for it
    noise: Floats  # (1 + m,) scale of each signal's noise
    names: Names = ()  # the names of the costs, if given
    kinds: ClassVar[Mapping[str, int]]  # the outcome distributions by name, with their codes in kernels
    truth: ClassVar[str] = "parameters"  # the attribute that holds the rows (1 + m, ...) of the signals

    @property
    def kind(self) -> int:
        """The code of the outcomes' distribution in kernels."""
        return self.kinds[self.outcomes]

    @property
    def rows(self) -> Floats:
        """The rows (1 + m, …) that determine the means of each signal."""
        rows: Floats = getattr(self, self.truth)
        return rows

    @property
    def costs(self) -> int:
        return int(self.noise.size) - 1

    @classmethod
    def get_builtin_class(cls) -> "type[NoisyWorld] | None":
        """Return the built-in world class that this one is or extends; None if there is none."""
        ours = [kind for kind in cls.__mro__ if kind.__module__.startswith("stagewise.")]
        return next((kind for kind in ours if issubclass(kind, NoisyWorld) and not isabstract(kind)), None)

    @property
    def is_builtin(self) -> bool:
        return type(self) is self.get_builtin_class()

    @property
    def names_safe(self) -> bool:
        return self.is_builtin and bool(self.actions.names_safe)

    @property
    def has_fixed_actions(self) -> bool:
        return type(self).actions_in is NoisyWorld.actions_in and self.actions.draw(RandomKey()) is self.actions

    @property
    def draw_kind(self) -> int:
        """What a loop draws in every round (see `engine.loop`)."""
        return DIRECTIONS if self.actions.fresh else 0

    @property
    def draw_parameters(self) -> tuple[int, Floats]:
        """The index of the safe action (−1: not listed), and the parameters that a loop draws with."""
        return -1, np.array([getattr(self.actions, "safe", None) or 0.0])

    def signed_parameters(self, signs: Floats) -> Floats:
        """Return the parameters from which a loop computes means, times the sign of each signal."""
        return self.rows * signs[:, np.newaxis]

    def check(self, policy: Any) -> None:
        parent = self.get_builtin_class()
        if parent is not None and type(self).means is not parent.means:
            template = (
                "{name} is a {parent} with its own means, and runs would be scored by the means of {parent}; "
                "write it as a separate world class"
            )
            raise InvalidProblem(ErrorCode.UNSUPPORTED, template, name=type(self).__name__, parent=parent.__name__)

    def max_at_safe(self, signs: Floats) -> Floats:
        return np.asarray(self.actions.max_at_safe(self.rows * signs[:, np.newaxis]))

    def mean_at_safe(self) -> Floats:
        return np.asarray(self.actions.mean_at_safe(self.rows))

    def reorder_costs(self, names: Sequence[str]) -> Self:
        """Return the world with its costs in the order of limits of these names; unchanged if its costs have no names.

        Unnamed limits are matched in the order of the costs.
        """
        limits = tuple(names)
        if not self.names or not limits or limits in (self.names, build_default_names(len(self.names))):
            return self
        order = [0, *(1 + index for index in get_cost_order(self.names, limits))]
        other = self.with_truth(self.rows[order])
        other.noise, other.names = copy_read_only(self.noise[order]), limits
        return other

    def with_truth(self, rows: Floats) -> Self:
        """Return the world with other rows (1 + m, …)."""
        other = copy(self)
        setattr(other, self.truth, copy_read_only(rows))
        return other

    def actions_in(self, draw: RandomKey) -> Any:
        return self.actions.draw(draw)

    @property
    def most(self) -> Floats:
        """The largest mean (1 + m,) of every signal over all actions that can be offered."""
        return np.asarray(self.actions.most(self.rows))

    def describe_rows(self, rows: Any) -> dict[str, Any]:
        """Return the common part of a description, for rows (1 + m, …)."""
        return {
            "kind": type(self).__name__,
            "reward": rows[0].tolist(),
            "cost": encode_costs(rows[1:], self.names),
            "noise": encode_signals(self.noise, self.names),
            "outcomes": self.outcomes,
        }

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        return cls.from_settings(described)

    @classmethod
    def from_settings(cls, described: Mapping[str, Any], **objects: Any) -> Self:
        """Return a world from described settings and rebuilt objects; a description always has a noise."""
        settings = dict(described)
        unused_noise = settings.pop("noise", None) if settings.get("outcomes") == "bernoulli" else None
        world = cls(**settings, **objects)
        if unused_noise is not None:
            signals = get_signal_names(world.costs, world.names)
            noise = order_by_signal(unused_noise, world.names, "noise")
            world.noise = copy_read_only(check_per_signal(noise, signals, "noise"))
        return world

    def outcome(self, action: Any, draw: RandomKey) -> Outcome:
        return self.draw_outcome(self.means(action), draw)

    def draw_outcome(self, means: Floats, draw: RandomKey) -> Outcome:
        """Return the outcome of a round for means (1 + m,)."""
        values = np.empty(means.size)
        fill_outcome(self.kind, means, self.noise, *check_draw(draw), values)
        return Outcome(float(values[0]), values[1:])


def describe_eligible(actions: Any) -> dict[str, list[int]]:
    """Return the indices of the offered actions, if not all are offered."""
    return {"eligible": np.flatnonzero(actions.eligible).tolist()} if actions.eligible.size else {}


def select_eligible(actions: Any, eligible: list[int] | None) -> Any:
    """Return the actions restricted to these indices; None: all."""
    return actions if eligible is None else actions.only(eligible)


def get_signal_names(costs: int, names: Names = ()) -> Names:
    return ("reward", *(names or (f"cost {j + 1}" for j in range(costs))))


def parse_costs(value: Any) -> tuple[Floats, Names]:
    """Return the costs of a world, and their names where they are given by name; else none."""
    if not isinstance(value, Mapping):
        return check_array(value, "cost"), ()
    given = check_mapping(value, "cost")
    names = tuple(check_name(name, "the name of a cost") for name in given)
    if not names or "reward" in names:
        rule = "one for every cost, unique and other than 'reward'"
        raise InvalidProblem.must_be(ErrorCode.DUPLICATE_NAME, "the list of the names of costs", names, rule)
    rows = [check_array(given[name], f"the cost {name!r}") for name in names]
    if len({row.shape for row in rows}) > 1:
        shapes = ", ".join(f"{name!r} {row.shape}" for name, row in zip(names, rows, strict=True))
        raise InvalidProblem(ErrorCode.WRONG_SHAPE, "the costs have shapes {shapes}; they must agree", shapes=shapes)
    return np.stack(rows), names


def parse_means(reward: Any, cost: Any, over: str) -> tuple[Floats, Names]:
    """Return the rows (1 + m, …) of the reward and every cost, and the costs' names; `over` names the other axes."""
    (costs, names), rewards, axes = parse_costs(cost), check_array(reward, "reward"), over.count(",") + 1
    costs = np.atleast_1d(costs)[np.newaxis] if costs.ndim <= axes else costs
    if rewards.ndim != axes or rewards.size == 0 or costs.shape[1:] != rewards.shape:
        shape = over if axes > 1 else f"{over},"
        template = "reward has shape {shape} and cost has {shape_2}; they must be ({shape_3}) and (m, {over})"
        data = {"shape": rewards.shape, "shape_2": costs.shape, "shape_3": shape, "over": over}
        raise InvalidProblem(ErrorCode.WRONG_SHAPE, template, **data)
    return np.concatenate([rewards[np.newaxis], costs]), names


def order_by_signal(value: Any, names: Names, what: str) -> Any:
    """Return values given by name in the order of the reward and the costs; others unchanged."""
    return order_by_name(value, ("reward", *names), what) if isinstance(value, Mapping) else value


def parse_noise(value: Any, signals: Sequence[str], names: Names, outcomes: str) -> Floats:
    """Return the scale (1 + m,) of the noise of each signal; 0.1 by default. An unused noise is rejected."""
    if value is not None and outcomes == "bernoulli":
        raise InvalidProblem.unused("noise", value, "outcomes are 'bernoulli', which use no noise")
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
    """Return where the costs of these names stand among a world's own."""
    for name in (*own, *asked):
        if name not in own or name not in asked:
            subject, others = ("a cost of the world", asked) if name in own else ("a limit of the policy", own)
            raise InvalidProblem.must_be_one_of(ErrorCode.WORLD_MISMATCH, subject, name, others)
    return [own.index(name) for name in asked]


def check_probabilities(low: Floats, high: Floats, signals: Sequence[str], outcomes: str, slight: float = 0.0) -> None:
    """Raise if means are outside [0, 1]; `low` and `high` are the smallest and largest of every signal."""
    for name, least, most in zip(signals, low.tolist(), high.tolist(), strict=True):
        if not (least >= -slight and most <= 1.0 + slight):
            wrong = most if most > 1.0 + slight else least
            template = "means of {name!r} lie in [{least:g}, {most:g}]; {outcomes} needs them in [0, 1]{wrong}"
            data = {"name": name, "least": least, "most": most, "outcomes": outcomes, "wrong": suggest_percent(wrong)}
            raise InvalidProblem(ErrorCode.OUT_OF_RANGE, template, **data)
