"""Randomised trials: nobody's other outcome is known, but what each treatment did to each kind of person is.

Two things are done with one. A policy is *enrolled*: a round draws one of the people with replacement, and what comes
of an action is what came of it for somebody of the same group who was given it in the trial; so the rate of every
action in every group is known. And a policy that learned from one half of the trial is *evaluated* on the other, on
real people and on what they were really given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.kernels.compile import Floats, Ints
from stagewise_studies import tally
from stagewise_studies.replay import Chooser, People, Track, Written, always, best_under, visitors
from stagewise_studies.study import Size

EVERYBODY, GROUP = "everybody", "group"
GUARDED, UNGUARDED, SAFE, TODAY, POSSIBLE = "guarded", "unguarded", "safe", "today", "possible"


@dataclass(frozen=True)
class Trial:
    """n people of a randomised trial: what each is known by, was given, and what came of it."""

    actions: tuple[str, ...]
    took: Ints  # (n,) which action
    contexts: list[dict[str, Any]]  # by name
    reward: Floats  # (n,)
    cost: Floats  # (n,)
    groups: Ints  # (n,) kinds of people, each of whom every action was given to some

    def people(self) -> People:
        """Return the people with the mean of every action in their group: what policies are judged by."""
        reward, cost = (self.rates(of)[self.groups] for of in (self.reward, self.cost))
        ways = {EVERYBODY: np.zeros_like(self.groups), GROUP: self.groups}
        return People(self.actions, self.contexts, reward, cost, ways)

    def rates(self, of: Floats) -> Floats:
        """Return the mean (groups, K) of what came of every action."""
        return np.array([[of[rows].mean() for rows in row] for row in self.cells()])

    def cells(self) -> list[list[Ints]]:
        """Return who of each group was given each action."""
        ways = range(int(self.groups.max()) + 1), range(len(self.actions))
        return [[np.flatnonzero((self.groups == g) & (self.took == a)) for a in ways[1]] for g in ways[0]]

    def frame(self, rows: Any, problem: sw.Problem) -> dict[str, Any]:
        """Return some of the rows as the log of a problem with one limit."""
        some, (limit,) = np.arange(self.took.size)[rows], problem.limits
        told: dict[str, Any] = {"action": [self.actions[place] for place in self.took[some]]}
        told |= {name: [self.contexts[row][name] for row in some] for name in problem.expected}
        return told | {problem.reward.name: self.reward[some], limit: self.cost[some]}


@dataclass(frozen=True)
class Enrolled:
    """A problem with one limit, played by an agent on people of a trial."""

    problem: sw.Problem
    trial: Trial

    def play(self, people: People, rounds: int, seed: int) -> Track:
        """Play one run."""
        who, chance = visitors(people, rounds, seed), np.random.default_rng([seed, 2]).random(rounds)
        agent, cells, (limit,) = sw.Agent(self.problem, seed=seed), self.trial.cells(), self.problem.limits
        told = [{name: one[name] for name in self.problem.expected} for one in people.contexts]
        shares, feared, fallbacks = np.empty((rounds, len(people.actions))), np.empty(rounds), dict[str, int]()
        for t, person in enumerate(who.tolist()):
            decision: Any = agent.decide(told[person])
            shares[t] = [decision.probabilities[name] for name in people.actions]
            feared[t] = decision.dearest[0]
            if decision.fallback is not None:
                fallbacks.setdefault(decision.fallback, t)
            alike = cells[self.trial.groups[person]][decision.index]
            like = alike[int(chance[t] * alike.size)]
            seen = {self.problem.reward.name: self.trial.reward[like], limit: self.trial.cost[like]}
            agent.learn(decision.id, **seen)
        reward, cost = (np.einsum("ij,ij->i", shares, means[who]) for means in (people.reward, people.cost))
        rates = {way: np.einsum("ij,ij->i", shares, people.rates(way, people.cost)[who]) for way in people.groups}
        return Track(who, reward, cost, rates, feared, fallbacks)


def halves(trial: Trial, seed: int = 0) -> tuple[Ints, Ints]:
    """Return the rows of two halves, drawn once and for all."""
    order = np.random.default_rng([seed, 3]).permutation(trial.took.size)
    return np.sort(order[: order.size // 2]), np.sort(order[order.size // 2 :])


def held_out(trial: Trial, problems: Mapping[str, sw.Problem], propensity: Any) -> list[dict[str, Any]]:
    """Return what the second half of a trial says of agents that learned from the first, and of every action."""
    first, second = halves(trial)
    problem, agents = next(iter(problems.values())), {}
    for name, one in problems.items():
        agents[name] = sw.Agent(one, seed=0)
        agents[name].learn_frame(trial.frame(first, one))
    log, rows = trial.frame(second, problem), []
    for name, candidate in {**agents, **{action: action for action in trial.actions}}.items():
        told = sw.evaluate(log, problem, candidate, propensity=propensity).candidate
        rows.append({"policy": name, **ends(told.estimates, problem), "people it counts as": round(told.effective)})
    return rows


def ends(estimates: Mapping[str, Any], problem: sw.Problem) -> dict[str, Any]:
    """Return the doubly robust estimate and interval of every signal; None where the log does not tell."""
    told: dict[str, Any] = {}
    for signal in problem.signals:
        one = estimates[signal]["dr"]
        plain = one.plain()
        for name, end in ((signal, "value"), (f"{signal}, from", "low"), (f"{signal}, to", "high")):
            told[name] = None if plain[end] is None else round(float(plain[end]), 4)
    return told


def choosers(trial: Trial, problems: Mapping[str, sw.Problem]) -> Mapping[str, Chooser]:
    """Return who plays: the problems, the safe action, the trial's own lots, and the best under the first limit."""
    people, first = trial.people(), next(iter(problems.values()))
    lots = np.bincount(trial.took, minlength=len(trial.actions)) / trial.took.size
    return {
        **{name: Enrolled(problem, trial) for name, problem in problems.items()},
        SAFE: always(people, first.safe),
        TODAY: Written(np.broadcast_to(lots, people.cost.shape)),
        POSSIBLE: best_under(people, EVERYBODY, limit_of(first), first.safe),
    }


def limit_of(problem: sw.Problem) -> float:
    """Return the number of a problem's only limit."""
    (limit,) = problem.limits.values()
    assert isinstance(limit.value, float)
    return limit.value


def told(trial: Trial, policies: Mapping[str, Chooser], size: Size) -> dict[str, Any]:
    """Play all policies, and return what every trial's study tells of them."""
    people, drawn = trial.people(), (GUARDED, UNGUARDED, SAFE, TODAY, POSSIBLE)
    tracks = tally.played(people, policies, *size)
    limits = {name: limit_of(one.problem) for name, one in policies.items() if isinstance(one, Enrolled)}
    limit = limits[GUARDED]
    own = {**limits, UNGUARDED: limit}
    return {
        "limit": limit,
        "people": trial.took.size,
        "actions": [of_action(trial, place, name) for place, name in enumerate(trial.actions)],
        "rows": [tally.row(name, runs, EVERYBODY, own.get(name, limit)) for name, runs in tracks.items()],
        "curves": {name: tally.curve(tracks[name], tracks[SAFE]) for name in drawn},
        "by_group": {name: tally.by_group(people, tracks[name], GROUP) for name in drawn},
        "finer": tally.shares_over(tracks[GUARDED], [EVERYBODY, GROUP], limit),
    }


def of_action(trial: Trial, place: int, name: str) -> dict[str, Any]:
    """Return what the trial says of one action."""
    took = trial.took == place
    means = {what: tally.mean([of[took].mean()]) for what, of in (("reward", trial.reward), ("cost", trial.cost))}
    return {"action": name, "people": int(took.sum()), **means}
