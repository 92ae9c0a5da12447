"""CAPS over actions in a context: what is done for this user, each signal with a model of its own."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import DECLARED, HOME
from stagewise.kernels.loop.round import EVERY, MIXTURE, Form
from stagewise.models.arms import end_shares, lows_of
from stagewise.models.context import NOISE, Signal, SignalModel, action_shares
from stagewise.models.part import Modelled
from stagewise.policies.arrays import assembled
from stagewise.policies.baseline import armed, check_safe_range
from stagewise.policies.ceilings import ceilings_of
from stagewise.policies.certified import Certified
from stagewise.policies.learning import check_unit_range
from stagewise.policies.linear import ridge_of
from stagewise.policies.mixtures import decision_from
from stagewise.policies.policy import State
from stagewise.policies.rays import own
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import keep, probability, promise_numbers, settle
from stagewise.policies.user_rows import UserRows
from stagewise.problem.checks import MOST, number, one_of, positive, shown, size_of, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolved, safe_costs
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextCAPS(Certified, UserRows, SafePolicy):
    """Certified posterior sampling over actions in a context: the mixture of every round has its costs in check.

    The safe action is one of the actions, `SafeAction(arm=…)`: what is done today, for this user. Its `cost` bounds its
    mean costs for every user, its `reward` is the least that its mean reward is. Every outcome lies in [0, 1]. Every
    signal has a model of its own: linear in the context with parameters for every action, or a rate for every action,
    by segment where that is said (docs/theory/context-models.md).

    >>> from stagewise.problem.context import Context
    >>> policy = ContextCAPS(
    ...     actions=3, context=2, safe_action=SafeAction(arm=0, reward=0.0, cost=0.001), threshold={"opt_out": 0.02}
    ... )
    >>> decision = policy.decide(policy.start(), Context([0.3, 0.1]))
    >>> decision.index, decision.dearest
    (0, array([0.001]))
    """

    actions: int
    """How many actions there are, the safe one among them."""
    context: int = 0
    """How many numbers are known about a user, each in [−1, 1]; a constant is added to them."""
    segments: int = 0
    """In how many ways users are divided into segments; `by` names a signal for each."""
    by: Mapping[str, int] | None = None
    """By which division a signal's rates are kept; a signal that is not named has one rate for each action."""
    reward_model: SignalModel = "linear"
    """How the mean reward depends on user and action."""
    cost_model: SignalModel | Mapping[str, SignalModel] = "rates"
    """How mean costs do; one for all, or one for each."""
    norm_bound: float = 1.0
    """S: the norm of every action's parameter, where a signal is linear; else it is refused."""
    ridge: float | None = None
    """λ of the regressions; None: n R²/S²."""
    launched: int | None = None
    """How many actions there were when learning began; those that came later take what was kept back of δ."""
    expected: Mapping[str, float] | None = None
    """Around which mean a cost's rates have the sharpest sets; None: its limit, the first where it is changed later."""
    share_delta: bool = field(init=False, default=True)

    decides: ClassVar[type[Decision]] = Decision  # what its decisions are
    form: ClassVar[Form] = Form(apiece=1, cells=1, rule=MIXTURE, sampled=EVERY, apart=1)  # one for all models
    mixes: ClassVar[bool] = True
    apart: ClassVar[bool] = True  # type: ignore[misc]  # every signal has a model of its own
    bounded: ClassVar[bool] = True  # outcomes are promised to lie in [0, 1]

    def __post_init__(self) -> None:
        keep(self)
        actions = size_of(self.actions, "actions")
        safe = armed(self.safe_action, actions)
        thresholds = resolved(self.threshold, safe)
        whole(self.context, "context", f"from 0 to {MOST}", 0, MOST)
        whole(self.segments, "segments", "from 0 to 64", 0, 64)
        check_safe_range(safe, thresholds, "rescale")
        ceilings = ceilings_of(thresholds, self.cost_bound, 0.0)
        promise = promise_numbers(thresholds, ceilings, None, 1.0, self.watch)
        settle(self, thresholds=thresholds)
        last = self.certificate_numbers(safe.reward)
        parts = self.modelled(safe, thresholds)
        head, nowhere = (self.switches | DECLARED, 0, int(safe.arm or 0)), np.zeros(self.width)
        layout, settings = assembled(head, promise, nowhere, parts, last=last)
        settle(self, layout=layout, settings=settings)

    @cached_property
    def models(self) -> dict[str, str]:
        """How each signal is modelled, by its name."""
        names, kinds, given = self.thresholds.names, get_args(SignalModel), self.cost_model
        if isinstance(given, Mapping):
            given = {**dict.fromkeys(names, "rates"), **by_name(given, names, "cost_model", "limits")}
        told = {"reward": self.reward_model, **(given if isinstance(given, dict) else dict.fromkeys(names, given))}
        return {name: one_of(kind, kinds, f"the model of {name!r}") for name, kind in told.items()}

    @cached_property
    def divisions(self) -> dict[str, int]:
        """By which division each signal's rates are kept; −1: by none."""
        given = by_name(self.by, self.models, "by", "signals")
        for name, division in given.items():
            if self.models[name] != "rates":
                raise InvalidProblem(f"by names {name!r}, which is {self.models[name]}; only rates are kept by segment")
            whole(division, f"the division of {name!r}", f"below segments ({self.segments})", 0, self.segments - 1)
        unread = next((division for division in range(self.segments) if division not in given.values()), None)
        if unread is not None:
            raise InvalidProblem(
                f"segments is {self.segments}, and by keeps no signal by division {unread}; name a signal for it, or "
                "have fewer segments"
            )
        return {name: int(given.get(name, -1)) for name in self.models}

    @cached_property
    def declared_costs(self) -> list[float]:
        """What the safe action's signed mean costs are at most; ∞: nothing was declared."""
        known = self.thresholds.signs * safe_costs(self.safe_action, self.thresholds.names)
        return [math.inf if math.isnan(cost) else float(cost) for cost in known]

    @cached_property
    def shares(self) -> Floats:
        """What of δ every action takes."""
        launched = self.actions if self.launched is None else self.launched
        whole(launched, "launched", f"from 1 to {self.actions}, the actions there are", 1, self.actions)
        return action_shares(self.actions, launched)

    def modelled(self, safe: SafeAction, thresholds: Thresholds) -> tuple[Modelled, ...]:
        """Return the models of the signals as kernels read them."""
        size, bound, m = 1 + self.context, positive(self.norm_bound, "norm_bound"), thresholds.values.size
        ridge = ridge_of(self.ridge, size, NOISE, bound)
        divisions = self.divisions
        self.check_regressions_read()
        delta, (high, other) = probability(self.delta, "delta"), end_shares(m)
        costs = self.declared_costs
        declared, lows, parts = [-np.inf if safe.reward is None else safe.reward, *costs], lows_of(thresholds.signs), []
        expected = [0.5, *(thresholds.signs * self.sharpest(thresholds) - lows[1:]).tolist()]
        for place, (name, kind) in enumerate(self.models.items()):
            lower, upper = -math.log(delta * other), -math.log(delta * (high if place else other))
            signal = Signal(place, float(lows[place]), lower, upper, float(declared[place]), float(expected[place]))
            if kind == "linear":
                parts.append(signal.linear(size, self.shares, ridge, bound))
            else:
                division = divisions[name]
                parts.append(signal.rates(-1 if division < 0 else self.first_segment + division, self.shares))
        return tuple(parts)

    def check_regressions_read(self) -> None:
        """Refuse settings of regressions where no signal is linear."""
        if "linear" in self.models.values():
            return
        given = {"norm_bound": None if self.norm_bound == 1.0 else self.norm_bound, "ridge": self.ridge}
        for name, value in given.items():
            if value is not None:
                raise InvalidProblem(
                    f"{name} is {shown(value)}; leave it out, since it is for signals that are linear, and here all "
                    "are rates"
                )

    def sharpest(self, thresholds: Thresholds) -> Floats:
        """Return the mean costs (m,) around which the sets are sharpest."""
        given, means = by_name(self.expected, thresholds.names, "expected", "limits"), thresholds.values.copy()
        for name, value in given.items():
            if self.models[name] != "rates":
                raise InvalidProblem(f"expected names {name!r}, which is {self.models[name]}; only rates have one")
            mean = means[thresholds.names.index(name)] = number(value, f"the expected {name!r}")
            if not 0.0 <= mean <= 1.0:
                raise InvalidProblem(f"the expected {name!r} is {mean:g}; outcomes lie in [0, 1]")
        return means

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        rows, eligible = self.offer_of(actions)
        seen = self.chosen(self.form, state, rows, eligible, draw)
        played = own(rows[seen.code if seen.code >= 0 else self.layout.item(HOME)])
        told = (self.presented, draw.round)
        decision = decision_from(seen, played, *told, names=self.names, kind=self.decides, span=self.reward_span)
        return self.explained(seen, state, decision)

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        check_unit_range(values, self.thresholds, "every outcome must lie there, so rescale")
        return values


def by_name(given: Any, names: Collection[str], what: str, of: str) -> dict[str, Any]:
    """Return what a setting says by name, each of them one of these."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name in names for name in given):
        raise InvalidProblem(f"{what} is {shown(given)}; it must name {of}: {', '.join(names)}")
    return dict(given)
