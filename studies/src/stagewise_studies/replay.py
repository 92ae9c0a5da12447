"""People whose outcome under every action on offer is known, and policies played against them.

A round draws one of the people, with replacement: the people of the data are the population, so that the rate of any
group of them under any action is known and not estimated. What an agent sees is the outcome of what was drawn, no more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

import stagewise as sw
from stagewise.kernels.compile import Floats, Ints
from stagewise.problem.action_set import Flags

ROUNDING = 1e-9  # of sums of probabilities


@dataclass(frozen=True)
class People:
    """n people and K actions: what each is known by, and what each action would do to each."""

    actions: tuple[str, ...]
    contexts: list[dict[str, Any]]  # by name; a problem picks those that it declares
    reward: Floats  # (n, K) chance of the reward; a mean of what is known of the person
    cost: Floats  # (n, K) chance of the cost; never together with the reward
    groups: Mapping[str, Ints]  # ways of dividing them, (n,) each; a way that an agent is judged by refines its own
    offered: Flags | None = None  # (n, K) which actions are on offer; None: all
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what the groups of a way are called, in order

    def rates(self, way: str, of: Floats) -> Floats:
        """Return the mean (n, K) of every action in a person's group, among those to whom it is offered."""
        group, seen = self.groups[way], self.on_offer()
        sums = np.zeros((int(group.max()) + 1, len(self.actions)))
        counts = np.zeros_like(sums)
        np.add.at(sums, group, np.where(seen, of, 0.0))
        np.add.at(counts, group, seen)
        return np.asarray((sums / np.maximum(counts, 1.0))[group])

    def on_offer(self) -> Flags:
        """Return which actions are on offer to whom (n, K)."""
        return np.ones(self.cost.shape, dtype=bool) if self.offered is None else self.offered


Fallbacks = dict[sw.Reason, tuple[int, str]]
"""Why an agent fell back to the safe action: by reason, the first round and its sentence."""


class Track(NamedTuple):
    """One run, round by round."""

    people: Ints  # (T,) who came
    reward: Floats  # (T,) expected for this very person, over the draw of the action
    cost: Floats  # (T,)
    rates: dict[str, Floats]  # (T,) the expected cost in the person's group, by how groups are made
    feared: Floats | None = None  # (T,) what an agent said that the expected cost is at most
    fallbacks: Fallbacks | None = None  # why an agent fell back to the safe action


Comes = Callable[[int, int, float], tuple[float, float]]
"""From a person, an action's place and a number in [0, 1) to the reward and the cost that are seen."""


class Chooser(Protocol):
    """A policy that can be played."""

    def play(self, people: People, rounds: int, seed: int) -> Track: ...


def visitors(people: People, rounds: int, seed: int) -> Ints:
    """Return who comes: the same for every policy of a seed."""
    return np.random.default_rng([seed, 1]).integers(0, len(people.contexts), rounds)


@dataclass(frozen=True)
class Written:
    """A policy that was written down before: for each person the shares (n, K) of the actions. It learns nothing."""

    shares: Floats

    def play(self, people: People, rounds: int, seed: int) -> Track:
        who = visitors(people, rounds, seed)
        reward, cost = (np.einsum("ij,ij->i", self.shares, means) for means in (people.reward, people.cost))
        return Track(who, reward[who], cost[who], {way: mean_by(cost, of)[who] for way, of in people.groups.items()})


@dataclass(frozen=True)
class Learner:
    """A `sw.Problem` with one limit, played by an agent that sees what it did and nothing else."""

    problem: sw.Problem

    def play(self, people: People, rounds: int, seed: int) -> Track:
        who, chance = visitors(people, rounds, seed), np.random.default_rng([seed, 2]).random(rounds)
        agent, only, comes = sw.Agent(self.problem, seed=seed), offers(people), self.comes(people)
        told = [{name: context[name] for name in self.problem.expected} for context in people.contexts]
        shares, feared, fallbacks = np.empty((rounds, len(people.actions))), np.empty(rounds), Fallbacks()
        for t, person in enumerate(who.tolist()):
            decision: Any = agent.decide(told[person], only=only[person])
            shares[t] = [decision.probabilities[name] for name in people.actions]
            feared[t] = decision.dearest[0]
            if decision.reason is not None:
                fallbacks.setdefault(decision.reason, (t, str(decision.fallback)))
            seen = comes(person, decision.index, chance[t])
            agent.learn(decision.id, **dict(zip(self.problem.signals, seen, strict=True)))
        reward, cost = (np.einsum("ij,ij->i", shares, means[who]) for means in (people.reward, people.cost))
        rates = {way: np.einsum("ij,ij->i", shares, people.rates(way, people.cost)[who]) for way in people.groups}
        return Track(who, reward, cost, rates, feared, fallbacks)

    def comes(self, people: People) -> Comes:
        """Return what comes of an action: the reward by its chance for this very person, or the cost by its own."""

        def seen(person: int, place: int, chance: float) -> tuple[bool, bool]:
            good, bad = people.reward[person, place], people.cost[person, place]
            return bool(chance < good), bool(chance >= 1.0 - bad)

        return seen


def offers(people: People) -> list[list[str] | None]:
    """Return which actions every person can be given, by name; None: all."""
    if people.offered is None:
        return [None] * len(people.contexts)
    return [[name for name, on in zip(people.actions, row, strict=True) if on] for row in people.offered.tolist()]


def mean_by(values: Floats, of: Ints) -> Floats:
    """Return for each person the mean of the group (n,)."""
    counts = np.bincount(of)
    return np.asarray((np.bincount(of, weights=values) / np.maximum(counts, 1))[of])


def always(people: People, action: str) -> Written:
    """Return the policy that does the same for everybody."""
    shares = np.zeros(people.cost.shape)
    shares[:, people.actions.index(action)] = 1.0
    return Written(shares)


def each(people: People, places: Ints) -> Written:
    """Return the policy that gives every person the action at a place of its own."""
    return Written(np.eye(len(people.actions))[places])


def best_under(people: People, way: str, limit: float, safe: str) -> Written:
    """Return what could be done by who knows every group's rates and no more: the best two actions for each person.

        maximise Σ π_a r_g(a)  subject to  Σ π_a c_g(a) ≤ τ        (with one constraint two actions are enough)

    Where nothing keeps the limit, the safe action.
    """
    worth, price, on = people.rates(way, people.reward), people.rates(way, people.cost), people.on_offer()
    home, n = people.actions.index(safe), len(people.contexts)
    most, shares = np.full(n, -np.inf), np.eye(len(people.actions))[np.full(n, home)]
    for low in range(len(people.actions)):
        for high in range(len(people.actions)):
            step = np.maximum(price[:, high] - price[:, low], 1e-300)
            part = np.where(price[:, high] <= limit, 1.0, (limit - price[:, low]) / step)
            value = (1.0 - part) * worth[:, low] + part * worth[:, high]
            better = on[:, low] & on[:, high] & (price[:, low] <= limit) & (value > most)
            most[better], shares[better] = value[better], 0.0
            shares[better, low] = 1.0 - part[better]
            shares[better, high] += part[better]
    return Written(shares)


def over(track: Track, way: str, limit: float) -> Flags:
    """Say in which rounds the expected cost in the person's group was over the limit."""
    return np.asarray(track.rates[way] > limit + ROUNDING)
