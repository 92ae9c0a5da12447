"""Populations with a known outcome of every person and action, and simulation of policies on them.

A round draws one of the people with replacement, or they come in turn: the people of the data are the population, so
the rate of any group under any action is known, not estimated. An agent gets only the outcome of the action that was
drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats, Ints
from stagewise.problem.actions import Flags

ROUNDING = 1e-9  # of sums of probabilities


@dataclass(frozen=True)
class People:
    """n people and K actions: the context of each person, and the outcome of each action."""

    actions: tuple[str, ...]
    contexts: list[dict[str, Any]]  # by name; a problem picks those that it declares
    reward: Floats  # (n, K) probability of the reward
    cost: Floats  # (n, K) probability of the cost; never together with the reward
    groups: Mapping[str, Ints]  # divisions into groups, (n,) each
    offered: Flags | None = None  # (n, K) which actions are on offer; None: all
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of the groups by division
    in_turn: bool = False  # they come in the order of the data, each for an equal part of the rounds

    def rates(self, way: str, values: Floats) -> Floats:
        """Return the mean (n, K) of every action in a person's group, among those to whom it is offered."""
        group, offered = self.groups[way], self.on_offer()
        sums = np.zeros((int(group.max()) + 1, len(self.actions)))
        counts = np.zeros_like(sums)
        np.add.at(sums, group, np.where(offered, values, 0.0))
        np.add.at(counts, group, offered)
        return np.asarray((sums / np.maximum(counts, 1.0))[group])

    def on_offer(self) -> Flags:
        """Return which actions are on offer to whom (n, K)."""
        return np.ones(self.cost.shape, dtype=bool) if self.offered is None else self.offered


Fallbacks = dict[sw.FallbackReason, tuple[int, str]]
"""Why an agent played the safe action: by reason, the first round and its message."""


class Track(NamedTuple):
    """One run by round."""

    people: Ints  # (T,) the visitors
    reward: Floats  # (T,) expected for this person, over the draw of the action
    cost: Floats  # (T,)
    rates: dict[str, Floats]  # (T,) the expected cost in the person's group, by division
    pessimistic_costs: Floats | None = None  # (T,) the agent's upper bound of the expected cost
    fallbacks: Fallbacks | None = None  # why an agent played the safe action


OutcomeFunction = Callable[[int, int, float], tuple[float, float]]
"""From a person, an action's index and a uniform number to the observed reward and cost."""


class StudyPolicy(Protocol):
    """A policy that can be simulated."""

    def play(self, people: People, rounds: int, seed: int) -> Track: ...


def draw_visitors(people: People, rounds: int, seed: int) -> Ints:
    """Return the visitors, which are the same for every policy of a seed."""
    if people.in_turn:
        return np.arange(rounds) * len(people.contexts) // rounds
    return np.random.default_rng([seed, 1]).integers(0, len(people.contexts), rounds)


@dataclass(frozen=True)
class FixedPolicy:
    """A fixed policy: for each person the shares (n, K) of the actions. It does not learn."""

    shares: Floats

    def play(self, people: People, rounds: int, seed: int) -> Track:
        visitors = draw_visitors(people, rounds, seed)
        reward, cost = (np.einsum("ij,ij->i", self.shares, means) for means in (people.reward, people.cost))
        rates = {way: compute_group_means(cost, groups)[visitors] for way, groups in people.groups.items()}
        return Track(visitors, reward[visitors], cost[visitors], rates)


@dataclass(frozen=True)
class Learner:
    """A `sw.Problem` with one limit, played by an agent that gets only its own outcomes."""

    problem: sw.Problem
    given: Sequence[Mapping[str, Any]] = field(default=(), kw_only=True)
    """For each person what a model proposes, as `propose` or `scores`; none: the problem's policy decides."""

    def play(self, people: People, rounds: int, seed: int) -> Track:
        visitors, uniforms = draw_visitors(people, rounds, seed), np.random.default_rng([seed, 2]).random(rounds)
        agent, offered = sw.Agent(self.problem, seed=seed), list_offered(people)
        get_outcome = self.build_outcome(people)
        contexts = [{name: context[name] for name in self.problem.context_names} for context in people.contexts]
        shares, pessimistic_costs, fallbacks = np.empty((rounds, len(people.actions))), np.empty(rounds), Fallbacks()
        for t, person in enumerate(visitors.tolist()):
            given = self.given[person] if self.given else {}
            decision: Any = agent.decide(contexts[person], only=offered[person], **given)
            shares[t] = [decision.probabilities[name] for name in people.actions]
            pessimistic_costs[t] = decision.pessimistic_cost[0]
            if decision.reason is not None:
                fallbacks.setdefault(decision.reason, (t, str(decision.message)))
            outcome = get_outcome(person, decision.action_index, uniforms[t])
            outcomes = dict(zip(self.problem.signals, outcome, strict=True))
            agent.learn(decision.id, **{name: outcomes[name] for name in self.problem.reported})
        reward, cost = (np.einsum("ij,ij->i", shares, means[visitors]) for means in (people.reward, people.cost))
        rates = {way: np.einsum("ij,ij->i", shares, people.rates(way, people.cost)[visitors]) for way in people.groups}
        return Track(visitors, reward, cost, rates, pessimistic_costs, fallbacks)

    def build_outcome(self, people: People) -> OutcomeFunction:
        """Return the function that draws the outcome of an action for a person."""

        def get_outcome(person: int, action: int, uniform: float) -> tuple[bool, bool]:
            reward, cost = people.reward[person, action], people.cost[person, action]
            return bool(uniform < reward), bool(uniform >= 1.0 - cost)

        return get_outcome


def list_offered(people: People) -> list[list[str] | None]:
    """Return the offered actions of every person by name; None: all."""
    if people.offered is None:
        return [None] * len(people.contexts)
    rows = people.offered.tolist()
    return [[name for name, is_offered in zip(people.actions, row, strict=True) if is_offered] for row in rows]


def compute_group_means(values: Floats, groups: Ints) -> Floats:
    """Return for each person the mean of the group (n,)."""
    counts = np.bincount(groups)
    return np.asarray((np.bincount(groups, weights=values) / np.maximum(counts, 1))[groups])


def always(people: People, action: str) -> FixedPolicy:
    """Return the policy with one action for everybody."""
    shares = np.zeros(people.cost.shape)
    shares[:, people.actions.index(action)] = 1.0
    return FixedPolicy(shares)


def give_each(people: People, actions: Ints) -> FixedPolicy:
    """Return the policy with one action for each person."""
    return FixedPolicy(np.eye(len(people.actions))[actions])


def find_best_under(people: People, way: str, limit: float, safe: str) -> FixedPolicy:
    """Return the best policy of an oracle that knows every group's rates: two actions for each person.

        maximise Σ π_a r_g(a)  subject to  Σ π_a c_g(a) ≤ τ        (with one constraint two actions are enough)

    If nothing keeps the limit, it is the safe action.
    """
    rewards, costs, is_offered = people.rates(way, people.reward), people.rates(way, people.cost), people.on_offer()
    safe_index, n = people.actions.index(safe), len(people.contexts)
    best, shares = np.full(n, -np.inf), np.eye(len(people.actions))[np.full(n, safe_index)]
    for low in range(len(people.actions)):
        for high in range(len(people.actions)):
            step = np.maximum(costs[:, high] - costs[:, low], 1e-300)
            part = np.where(costs[:, high] <= limit, 1.0, (limit - costs[:, low]) / step)
            value = (1.0 - part) * rewards[:, low] + part * rewards[:, high]
            better = is_offered[:, low] & is_offered[:, high] & (costs[:, low] <= limit) & (value > best)
            best[better], shares[better] = value[better], 0.0
            shares[better, low] = 1.0 - part[better]
            shares[better, high] += part[better]
    return FixedPolicy(shares)


def is_over_limit(track: Track, way: str, limit: float) -> Flags:
    """Return in which rounds the expected cost in the person's group is over the limit."""
    return np.asarray(track.rates[way] > limit + ROUNDING)
