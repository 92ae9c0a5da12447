"""A problem, said once: actions, which one is safe, what is known of a user, what is wanted and what is limited."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.files.paths import path_of
from stagewise.files.toml import toml_of
from stagewise.kernels.compile import Floats
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.named_caps import NamedCAPS
from stagewise.policies.settings import probability
from stagewise.policies.told_by_name import ToldByName
from stagewise.problem.checks import mapping_of, shown
from stagewise.problem.declared import Declared, Limit, Reward, scaled
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.naming import listing, names_of, ranges_of
from stagewise.problem.plain_limits import (
    in_words,
    limit_from,
    limits_of,
    of_kind,
    plain_limit,
    plain_signal,
    scaled_limit,
)
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.window import Window
from stagewise.problem.words import nearest

TAKEN = ("decision", "reward", "cost", "costs", "now", "self", "action", "only", "context")  # names of arguments
SETTINGS = ("norm_bound", "ridge", "launched", "expected", "spread", "patience", "watch")  # of the policy


class Choice(NamedTuple):
    """How one signal is modelled, and why."""

    model: str
    by: str | None
    why: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(ToldByName, Declared):
    """What is to be decided, in the user's words: used by agents, simulations, certificates and the service alike.

    >>> problem = Problem(
    ...     actions=["nothing", "digest", "offer"], safe="nothing", context=["age"], reward=Reward("click"),
    ...     limits={"opt_out": Limit(0.02, safe=0.0)},
    ... )
    >>> print(problem)
    3 actions, of which 'nothing' is safe; 1 number about the user; delta 0.05
      click    reward in [0, 1]  linear in the context, action by action: there is a context
      opt_out  at most 0.02      one rate for each action: rare outcomes are learned soonest so
    """

    actions: Sequence[str]
    """The names of the actions."""
    safe: str
    """The action that is known to be safe: what is done today."""
    reward: Reward
    """What is wanted."""
    limits: Mapping[str, Limit]
    """What every round's expected costs must stay under, by name."""
    context: Sequence[str] | Mapping[str, Sequence[float]] = ()
    """Numbers about a user, each in [−1, 1]; a mapping gives other ranges, such as {"age": (18, 99)}."""
    delta: float = 0.05
    """The whole statement holds with probability 1 − δ."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the policy that overrule what follows from the problem."""

    def __post_init__(self) -> None:
        for name, value in {
            "actions": names_of(self.actions, "actions"),
            "context": ranges_of(self.context),
            "limits": limits_of(self.limits),
            "settings": mapping_of(self.settings, "settings") if isinstance(self.settings, Mapping) else self.settings,
        }.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.safe, str) or self.safe not in self.actions:
            near = nearest(self.safe, self.actions)
            raise InvalidProblem(
                f"safe is {shown(self.safe)}; it must be one of the actions: {listing(self.actions)}{near}"
            )
        if len(self.actions) < 2:
            raise InvalidProblem(f"the only action is {self.safe!r}; there must be another to choose")
        if not isinstance(self.reward, Reward):
            raise InvalidProblem(f"reward is {shown(self.reward)}; it must be Reward(name, low, high)")
        names = [self.reward.name, *self.limits, *self.context, *self.divisions]
        taken = next((name for name in names if name in TAKEN), None)
        if taken is not None:
            raise InvalidProblem(
                f"{taken!r} is what an argument of agents is called; give the signal or number another name"
            )
        divided = next((name for name in self.divisions if name in self.context), None)
        if divided is not None:
            raise InvalidProblem(
                f"{divided!r} is a number of the context and a segment (by={divided!r}); rates by segment need a name "
                f"for each group, so give the group a name of its own, such as by={divided + '_group'!r}"
            )
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidProblem(f"{twice!r} names two things; signals, numbers and segments need names of their own")
        unknown = [n for n in self.settings if n not in SETTINGS] if isinstance(self.settings, dict) else [None]
        if unknown:
            near = nearest(unknown[0], SETTINGS)
            raise InvalidProblem(f"settings are {shown(self.settings)}; they may be {', '.join(SETTINGS)}{near}")
        if probability(self.delta, "delta") >= 0.5:
            raise InvalidProblem(
                f"delta is {self.delta:g}; it is the chance of failure, so that 95 % confidence is 0.05"
            )
        self.policy()  # whatever it refuses is refused now

    @cached_property
    def signals(self) -> dict[str, Reward | Limit]:
        """The reward and the limits by name, the reward first."""
        return {self.reward.name: self.reward, **self.limits}

    @cached_property
    def divisions(self) -> tuple[str, ...]:
        """What users are divided into segments by, in the order in which it is first named."""
        by = [signal.by for signal in self.signals.values() if signal.by is not None]
        return tuple(dict.fromkeys(by))

    @cached_property
    def choices(self) -> dict[str, Choice]:
        """How each signal is modelled, and why."""
        return {name: self._choice(signal, name == self.reward.name) for name, signal in self.signals.items()}

    def _choice(self, signal: Reward | Limit, wanted: bool) -> Choice:
        if signal.model is not None:
            if signal.model == "linear" and not self.context:
                raise InvalidProblem("a signal is to be linear, and there is no context it could be linear in")
            return Choice(signal.model, signal.by, "as said")
        if signal.by is not None:
            return Choice("rates", signal.by, f"the limit holds in every {signal.by}" if not wanted else "by segment")
        if wanted and self.context:
            return Choice("linear", None, "there is a context")
        return Choice("rates", None, "there is no context" if wanted else "rare outcomes are learned soonest so")

    def policy(self) -> NamedCAPS:
        """Return the policy that plays this problem."""
        return NamedCAPS(problem=self)

    def numbered(self) -> ContextCAPS:
        """Return the same policy over numbered actions and scaled outcomes, for simulations."""
        return ContextCAPS(**self.told())

    def told(self) -> dict[str, Any]:
        """Return what a policy over numbered actions is told of this problem, all outcomes scaled to [0, 1]."""
        safe, home = {}, list(self.actions).index(self.safe)
        for name, limit in self.limits.items():
            safe[name] = None if limit.safe is None else scaled(limit, name, limit.safe)
        floor = self.reward.low if self.reward.safe is None else self.reward.safe
        divisions = {name: self.divisions.index(c.by) for name, c in self.choices.items() if c.by is not None}
        if self.reward.name in divisions:
            divisions["reward"] = divisions.pop(self.reward.name)
        return {
            "actions": len(self.actions),
            "context": len(self.context),
            "segments": len(self.divisions),
            "by": divisions or None,
            "reward_model": self.choices[self.reward.name].model,
            "cost_model": {name: self.choices[name].model for name in self.limits},
            "safe_action": SafeAction(arm=home, reward=scaled(self.reward, self.reward.name, floor), cost=safe),
            "threshold": {name: scaled_limit(name, limit) for name, limit in self.limits.items()},
            "delta": self.delta,
            **self.settings,
            **self._expected(),
        }

    def _expected(self) -> dict[str, Any]:
        """Return around which means the sets of limits are sharpest, scaled, where that was said and they are rates."""
        if self.settings.get("expected") is None:
            return {}
        given = mapping_of(self.settings["expected"], "expected")
        unknown = next((name for name in given if name not in self.limits), None)
        if unknown is not None:
            raise InvalidProblem(
                f"expected names {shown(unknown)}, which is no limit{nearest(unknown, list(self.limits))}"
            )
        means = {name: scaled(self.limits[name], name, value) for name, value in given.items()}
        return {"expected": {name: mean for name, mean in means.items() if self.choices[name].model == "rates"}}

    def with_action(self, name: str) -> "Problem":
        """Return the same problem with one action more; what was learned of the others carries over."""
        launched = self.settings.get("launched", len(self.actions))
        return replace(self, actions=[*self.actions, name], settings={**self.settings, "launched": launched})

    @cached_property
    def spans(self) -> Floats:
        """The lows and the lengths (2, 1 + m) of the signals' ranges."""
        signals = self.signals.values()
        return np.array([[s.low for s in signals], [s.high - s.low for s in signals]])

    @property
    def windows(self) -> dict[str, Window]:
        """After which time what counts for a signal that was not reported."""
        return {name: signal.waits for name, signal in self.signals.items() if signal.waits is not None}

    def __str__(self) -> str:
        numbers = f"{len(self.context)} number{'s' * (len(self.context) != 1)} about the user; " if self.context else ""
        rows = [f"{len(self.actions)} actions, of which {self.safe!r} is safe; {numbers}delta {self.delta:g}"]
        told = {self.reward.name: f"reward in [{self.reward.low:g}, {self.reward.high:g}]"}
        told |= {name: in_words(limit) for name, limit in self.limits.items()}
        wide, wider = max(map(len, told)), max(map(len, told.values()))
        for name, signal in self.signals.items():
            choice = self.choices[name]
            linear = choice.model == "linear"
            model = "linear in the context, action by action" if linear else "one rate for each action"
            model += f" in every {choice.by}" if choice.by else ""
            window = "" if signal.waits is None else f"; {signal.waits.in_words}"
            rows.append(f"  {name:{wide}}  {told[name]:{wider}}  {model}: {choice.why}{window}")
        return "\n".join(rows)

    @classmethod
    def load(cls, path: str | Path) -> "Problem":
        """Return the problem that a TOML file declares (docs/how-to/declare-a-problem.md)."""
        return cls.from_plain(toml_of(path_of(path)))

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> "Problem":
        """Return a problem from plain values, as a TOML or JSON file holds them."""
        told = dict(content)
        unknown = [name for name in told if name not in {f.name for f in fields(cls)}]
        if unknown:
            known = [f.name for f in fields(cls)]
            other = nearest(unknown[0], known)
            raise InvalidProblem(f"the problem has {shown(unknown[0])}, which is none of {listing(known)}{other}")
        absent = [name for name in ("actions", "safe", "reward", "limits") if name not in told]
        if absent:
            raise InvalidProblem(f"the problem lacks {listing(absent)}")
        told["reward"] = of_kind(Reward, told["reward"], "reward")
        if not isinstance(told["limits"], Mapping):
            raise InvalidProblem(
                f"limits are {shown(told['limits'])}; they must be tables by name, as [limits.opt_out]"
            )
        told["limits"] = {name: limit_from(entry, name) for name, entry in told["limits"].items()}
        return cls(**told)

    def plain(self) -> dict[str, Any]:
        """Return plain values that `from_plain` reads."""
        return {
            "actions": list(self.actions),
            "safe": self.safe,
            "context": {name: list(ends) for name, ends in self.ranges},
            "delta": float(self.delta),
            "settings": dict(self.settings),
            "reward": plain_signal(self.reward),
            "limits": {name: plain_limit(limit) for name, limit in self.limits.items()},
        }
