"""A courier who decides in the morning how the parcels of the day travel, and learns in the evening what was late."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import stagewise as sw
from stagewise_studies.cases.flights.season import ACTIONS, FEES
from stagewise_studies.replay import Fallbacks, People, Track, draw_visitors

SECONDS = 86_400.0
START = 1_356_998_400.0  # 1 January 2013
FEE, COST = "fee", "late"


def declare(limit: float, drift: Any) -> sw.Problem:
    """Return what is declared; fees move as well, so they are forgotten slowly."""
    return sw.Problem(
        action_names=ACTIONS, safe_name=ACTIONS[0],
        reward=sw.Reward(FEE, high=FEES.max(), safe_bound=FEES[0], half_life="30d"),
        limits={COST: sw.Limit(limit, safe_bound=0.0, drift=drift)},
    )  # fmt: skip


@dataclass(frozen=True)
class Courier:
    """A problem, played day by day."""

    problem: sw.Problem
    acknowledges: bool = False
    """Whether every alert is acknowledged on the next morning."""

    def play(self, people: People, rounds: int, seed: int) -> Track:
        days, chance = draw_visitors(people, rounds, seed), np.random.default_rng([seed, 2])
        agent, places = sw.Agent(self.problem, seed=seed), {name: index for index, name in enumerate(ACTIONS)}
        shares, bounds, fallbacks = np.empty((rounds, len(ACTIONS))), np.empty(rounds), Fallbacks()
        for parcels in np.split(np.arange(rounds), np.flatnonzero(np.diff(days)) + 1):
            day = int(days[parcels[0]])
            now = START + day * SECONDS
            if self.acknowledges:
                for alert in [alert for alert in agent.health() if alert.verdict == "contradicted"]:
                    agent.acknowledge_alert(alert.name, "the season")
            decided = agent.decide_frame({"parcel": parcels}, id="parcel", run=f"day {day}", now=now)
            shares[parcels] = np.column_stack([decided[f"probability.{name}"] for name in ACTIONS])
            bounds[parcels] = decided[f"limit.{COST}.pessimistic_cost"]
            for reason in {str(reason) for reason in decided["reason"] if reason is not None}:
                fallbacks.setdefault(sw.FallbackReason(reason), (int(parcels[0]), reason))
            taken = np.array([places[name] for name in decided["action"]])
            late = chance.random(parcels.size) >= 1.0 - people.cost[day, taken]
            outcomes = {COST: late, FEE: np.where(late, 0.0, FEES[taken])}
            agent.learn_outcomes({"decision_id": decided["decision_id"], **outcomes}, now=now + SECONDS / 2)
        reward, cost = (np.einsum("ij,ij->i", shares, means[days]) for means in (people.reward, people.cost))
        rates = {way: np.einsum("ij,ij->i", shares, people.rates(way, people.cost)[days]) for way in people.groups}
        return Track(days, reward, cost, rates, bounds, fallbacks)
