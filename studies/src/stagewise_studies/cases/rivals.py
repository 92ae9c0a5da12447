"""Methods of others on warfarin: who doses right, and in how many rounds and for whom the limit is exceeded."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.reports.style import (
    INK,
    STYLES,
    add_legend_below,
    draw_band,
    draw_limit_line,
    format_axes,
    format_round_axis,
    make_figure,
)
from stagewise_reproduction.rivals.conformal import Conformal
from stagewise_reproduction.rivals.estimation_to_decision import LOE2D, ConservativeSquareCB
from stagewise_reproduction.rivals.pacing import Pacing
from stagewise_studies import drawing, tally
from stagewise_studies.cases import warfarin
from stagewise_studies.cases.warfarin.ward import NAMES, RACE, Ward
from stagewise_studies.replay import Learner, People, StudyPolicy, Track, always, draw_visitors, find_best_under
from stagewise_studies.study import POSSIBLE, SAFE, TODAY, Claim, Size, at_least, at_most

TITLE = "Warfarin by methods of others: who doses right, and for whom is the limit exceeded?"
SOURCE = warfarin.SOURCE
SIZE = Size(seeds=10, rounds=20_000)
LIMIT, BAND = warfarin.LIMIT, "band"
SAFE_COST = 0.05  # declared of 14 mg, on average; conservative C-SquareCB needs it
OURS, LINEAR = "CAPS, rates by band", "CAPS, linear costs"
RIVALS = ("LOE2D", "conservative C-SquareCB", "pacing", "conformal")

data = warfarin.data


@dataclass(frozen=True)
class Rival:
    """A rival whose regression has one mean for each dose in each band, on patients."""

    policy: Any  # a RidgeRival that decides

    def play(self, people: People, rounds: int, seed: int) -> Track:
        visitors, uniforms = draw_visitors(people, rounds, seed), np.random.default_rng([seed, 2]).random(rounds)
        features = build_features(people)
        shares, state = np.zeros((rounds, len(people.actions))), self.policy.start()
        for t, person in enumerate(visitors.tolist()):
            actions = SimpleNamespace(features=features[people.groups[BAND][person]])
            decision = self.policy.decide(state, actions, sw.RandomKey(seed, 0, t))
            index = decision.action_index
            chances = decision.probabilities
            shares[t] = np.eye(len(people.actions))[index] if chances is None else np.asarray(chances)[: len(NAMES)]
            reward, cost = people.reward[person, index], people.cost[person, index]
            outcome = sw.Outcome(float(uniforms[t] < reward), float(uniforms[t] >= 1.0 - cost))
            state = self.policy.learn(state, decision, outcome)
        rates = {way: np.einsum("ij,ij->i", shares, people.rates(way, people.cost)[visitors]) for way in people.groups}
        reward, cost = (np.einsum("ij,ij->i", shares, means[visitors]) for means in (people.reward, people.cost))
        return Track(visitors, reward, cost, rates)


def build_features(people: People) -> Floats:
    """Return the features (bands, K, bands · K): each dose in each band has its own."""
    bands, actions = int(people.groups[BAND].max()) + 1, len(people.actions)
    return np.eye(bands * actions).reshape(bands, actions, bands * actions)


def policies(data: Ward) -> Mapping[str, StudyPolicy]:
    """Return the rivals, the library's policies, and fixed ones."""
    people = data.people
    size = build_features(people).shape[2]
    safe = sw.SafeAction(features=np.zeros(size))
    settings: dict[str, Any] = {
        "safe_action": safe, "safe_index": 0, "threshold": LIMIT, "noise": 0.5, "norm_bound": 3.0, "delta": 0.05
    }  # fmt: skip
    rivals = {
        "LOE2D": LOE2D(**settings),
        "conservative C-SquareCB": ConservativeSquareCB(**settings, safe_cost=SAFE_COST),
        "pacing": Pacing(**settings),
        "conformal": Conformal(**settings),
    }
    return {
        OURS: Learner(warfarin.problem(LIMIT)),
        LINEAR: Learner(warfarin.problem(LIMIT, linear=True)),
        **{name: Rival(policy) for name, policy in rivals.items()},
        SAFE: always(people, NAMES[0]),
        TODAY: always(people, "35 mg"),
        POSSIBLE: find_best_under(people, BAND, LIMIT, NAMES[0]),
    }


def play(data: Ward, policies: Mapping[str, StudyPolicy], size: Size) -> dict[str, Any]:
    """Play all, and time one run of each that decides."""
    people = data.people
    tracks = tally.simulate_policies(people, policies, *size)
    rows = []
    for name, runs in tracks.items():
        row = tally.build_row(name, runs, BAND, LIMIT)
        row["patients over, by band and race"] = tally.compute_shares_over(runs, [RACE], LIMIT)[RACE]
        row["microseconds a round"] = measure_round(policies[name], people, min(size.rounds, 2_000))
        rows.append(row)
    return {
        "limit": LIMIT,
        "rows": rows,
        "curves": {name: tally.compute_curve(runs, tracks[SAFE]) for name, runs in tracks.items()},
        "by_group": {name: tally.compute_costs_by_group(people, runs, BAND) for name, runs in tracks.items()},
        "caption": CAPTION,
        "remarks": list(REMARKS),
    }


def measure_round(policy: StudyPolicy, people: People, rounds: int) -> float | None:
    """Return the processor time of a round, the least of three runs; None: the policy is fixed."""
    if not isinstance(policy, Rival | Learner):
        return None
    seconds = []
    for _ in range(3):
        start = time.process_time()
        policy.play(people, rounds, 0)
        seconds.append(time.process_time() - start)
    return round(1e6 * min(seconds) / rounds, 1)


CAPTION = (
    "Real patients, drawn with replacement; bands hold the middle four fifths of the seeds. Left: patients whose dose "
    "is right, beside always 14 mg a week. Right: patients dosed too high; the limit is meant for every band."
)
REMARKS = (
    "Rounds over the limit: the expected share of over-dosed patients among all patients of the same band, under the "
    "mixture of the round. Patients over, by band and race: the same among the patients of the same band and race.",
    "The rivals are reconstructed from abstracts (docs/explanation/rivals.md). Their regression has one mean for each "
    "dose in each band, which is the model of CAPS' rates.",
)


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    figure, ((gain, cost),) = make_figure(1, 2, width=4.8, height=3.1)
    windows = len(result["curves"][OURS]["cost"]["middle"])
    points = (np.arange(windows) + 0.5) * result["size"]["rounds"] / windows
    for (colour, dashes), name in zip(STYLES, (OURS, LINEAR, *RIVALS), strict=False):
        for axes, signal in ((gain, "gain"), (cost, "cost")):
            band = {end: 100 * np.array(values) for end, values in result["curves"][name][signal].items()}
            draw_band(axes, points, band["low"], band["middle"], band["high"], colour, name, dashes)
    possible = 100 * np.array(result["curves"][POSSIBLE]["gain"]["middle"])
    gain.plot(points, possible, color=INK, linestyle=(0, (1, 1)), linewidth=1.2, label=POSSIBLE)
    format_axes(gain, "dosed right, beside the safe action", y="points more in a hundred")
    format_axes(cost, "dosed too high", y=drawing.HUNDRED)
    for axes in (gain, cost):
        format_round_axis(axes, "patient")
    draw_limit_line(cost, 100 * LIMIT, "limit")
    add_legend_below(figure, gain, 4)
    return figure


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, seeds = {row["policy"]: row for row in result["rows"]}, result["size"]["seeds"]
    over = "rounds over the limit"
    return [
        at_most("CAPS: share of runs with a round over the limit", rows[OURS]["runs over the limit"] / seeds, 0.05),
        *(at_least(f"{name}: share of rounds over the limit of the band", rows[name][over], 1e-4) for name in RIVALS),
        *(at_most(f"{name}: dosed too high, beside 1.1 limits", rows[name]["cost"], 1.1 * LIMIT) for name in RIVALS),
    ]
