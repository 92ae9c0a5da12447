"""The notification job: six templates, eight numbers, two limits; a log of it, and logs with one fault each."""

from dataclasses import replace
from typing import Any

import numpy as np

import stagewise as sw

ACTIONS = ["today", "short", "story", "offer", "digest", "sale"]
CLICKS = np.array([0.045, 0.055, 0.06, 0.075, 0.085, 0.08])
COSTS = np.array([[0.008, 0.010, 0.013, 0.028, 0.016, 0.035], [0.001, 0.0015, 0.002, 0.004, 0.003, 0.008]])
RANGES = {
    "age": (18.0, 99.0), "tenure": (0.0, 20.0), "opens_7d": (0.0, 7.0), "clicks_30d": (0.0, 30.0),
    "weekend": (0.0, 1.0), "mobile": (0.0, 1.0), "premium": (0.0, 1.0), "distance": (0.0, 1.0),
}  # fmt: skip
COINS = ("weekend", "mobile", "premium")
PROBLEM = sw.Problem(
    action_names=ACTIONS,
    safe_name="today",
    context=RANGES,
    reward=sw.Reward("click"),
    limits={
        "opt_out": sw.Limit(0.02, safe_bound=0.01, model="rates"),
        "complaint": sw.Limit(0.005, safe_bound=0.002, model="rates"),
    },
)


def clean(seed: int, rows: int = 50_000) -> dict[str, Any]:
    """Return a log of a campaign in which every template went to a share of the users, and nothing is wrong."""
    chance = np.random.default_rng([17, seed])
    slopes = 0.004 * np.random.default_rng(99).normal(size=(6, 8))
    scaled = chance.uniform(-1.0, 1.0, (rows, 8))
    for place, name in enumerate(RANGES):
        if name in COINS:
            scaled[:, place] = np.sign(scaled[:, place])
    shares = np.array([0.25, 0.15, 0.15, 0.15, 0.15, 0.15])
    sent = chance.choice(6, rows, p=shares)
    frame: dict[str, Any] = {"at": 1.7e9 + np.sort(chance.uniform(0.0, 30 * 86_400.0, rows))}
    frame["action"] = np.array(ACTIONS, dtype=object)[sent]
    frame["propensity"] = shares[sent]
    for place, (name, (low, high)) in enumerate(RANGES.items()):
        frame[name] = np.clip(low + 0.5 * (scaled[:, place] + 1.0) * (high - low), low, high)
    frame["country"] = np.array(["NZ", "AU", "UK", "IE"], dtype=object)[chance.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])]
    frame["click"] = (chance.random(rows) < CLICKS[sent] + np.einsum("ij,ij->i", slopes[sent], scaled)) * 1.0
    frame["opt_out"], frame["complaint"] = (chance.random((2, rows)) < COSTS[:, sent]) * 1.0
    return frame


def places(frame: dict[str, Any]) -> Any:
    """Return the number of what was done in every row."""
    return np.array([ACTIONS.index(name) for name in frame["action"]])


def limited(**changes: Any) -> sw.Problem:
    """Return the problem with another limit on opt-outs."""
    return replace(PROBLEM, limits={**PROBLEM.limits, "opt_out": replace(PROBLEM.limits["opt_out"], **changes)})


def redrawn(frame: dict[str, Any], name: str, means: Any, seed: int) -> None:
    """Let outcomes have other means."""
    frame[name] = (np.random.default_rng([18, seed]).random(len(means)) < means) * 1.0


def in_percent(frame: dict[str, Any], seed: int) -> sw.Problem:
    return limited(value=2.0, high=100.0, safe_bound=1.0)


def outcomes_in_percent(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["opt_out"] = 100.0 * frame["opt_out"]
    return PROBLEM


def shares_declared_as_percent(frame: dict[str, Any], seed: int) -> sw.Problem:
    return replace(PROBLEM, context={**RANGES, "distance": (0.0, 100.0)})


def never_binds(frame: dict[str, Any], seed: int) -> sw.Problem:
    return limited(value=0.3)


def safe_over_limit(frame: dict[str, Any], seed: int) -> sw.Problem:
    return limited(value=0.002, safe_bound=None)


def safe_declared_too_low(frame: dict[str, Any], seed: int) -> sw.Problem:
    return limited(safe_bound=0.003)


def sure_leak(frame: dict[str, Any], seed: int) -> sw.Problem:
    chance = np.random.default_rng([19, seed])
    frame["tenure"] = np.where(frame["opt_out"] > 0, 20.0 * chance.random(len(frame["click"])) ** 0.05, frame["tenure"])
    return PROBLEM


def faint_leak(frame: dict[str, Any], seed: int) -> sw.Problem:
    """Minutes in the app of the same day: what a click adds to them is well within what they are anyway."""
    chance = np.random.default_rng([19, seed])
    minutes, more = chance.exponential([[4.0], [16.0]], (2, len(frame["click"])))
    minutes = minutes + frame["click"] * more
    frame["clicks_30d"] = np.minimum(minutes, 30.0)
    return PROBLEM


def flag_leak(frame: dict[str, Any], seed: int) -> sw.Problem:
    chance = np.random.default_rng([19, seed])
    frame["premium"] = np.where(chance.random(len(frame["click"])) < 0.97, frame["click"], 1.0 - frame["click"])
    return PROBLEM


def leak_of_the_action(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["opens_7d"] = np.where(
        frame["action"] == "offer", np.minimum(frame["opens_7d"] + 0.7, 7.0), frame["opens_7d"]
    )
    return PROBLEM


def lost_with_the_outcome(frame: dict[str, Any], seed: int) -> sw.Problem:
    chance = np.random.default_rng([20, seed])
    frame["opt_out"] = np.where(
        (frame["opt_out"] > 0) & (chance.random(len(frame["click"])) < 0.5), np.nan, frame["opt_out"]
    )
    return PROBLEM


def lost_with_another(frame: dict[str, Any], seed: int) -> sw.Problem:
    chance = np.random.default_rng([20, seed])
    gone = chance.random(len(frame["click"])) < np.where(frame["click"] > 0, 0.1, 0.02)
    frame["complaint"] = np.where(gone, np.nan, frame["complaint"])
    return PROBLEM


def only_what_happened(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["opt_out"] = np.where(frame["opt_out"] > 0, 1.0, np.nan)
    return PROBLEM


def cut_too_late(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["opt_out"] = np.where(frame["at"] > np.quantile(frame["at"], 0.95), np.nan, frame["opt_out"])
    return PROBLEM


def too_few(frame: dict[str, Any], seed: int) -> sw.Problem:
    kept = (frame["action"] != "sale") | (np.random.default_rng([21, seed]).random(len(frame["click"])) < 0.02)
    for name in frame:
        frame[name] = frame[name][kept]
    frame["propensity"] = np.where(frame["action"] == "sale", 0.003 / 0.853, frame["propensity"] / 0.853)
    return PROBLEM


def idle_number(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["shoe_size"] = np.random.default_rng([22, seed]).uniform(35.0, 48.0, len(frame["click"]))
    return replace(PROBLEM, context={**RANGES, "shoe_size": (30.0, 50.0)})


def constant_number(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["tenure"] = np.full(len(frame["click"]), 3.0)
    return PROBLEM


def bent_reward(frame: dict[str, Any], seed: int) -> sw.Problem:
    place = places(frame)
    redrawn(frame, "click", CLICKS[place] + 0.05 * ((frame["age"] - 58.5) / 40.5) ** 2, seed)
    return PROBLEM


def product_in_reward(frame: dict[str, Any], seed: int) -> sw.Problem:
    place = places(frame)
    redrawn(frame, "click", CLICKS[place] + 0.03 * (2 * frame["mobile"] - 1) * (2 * frame["distance"] - 1), seed)
    return PROBLEM


def cost_moved_by_a_number(frame: dict[str, Any], seed: int) -> sw.Problem:
    place = places(frame)
    redrawn(frame, "opt_out", COSTS[0, place] * (1.0 + 0.5 * (frame["age"] - 58.5) / 40.5), seed)
    return PROBLEM


def drifting_reward(frame: dict[str, Any], seed: int) -> sw.Problem:
    place, when = places(frame), np.linspace(0.0, 1.0, len(frame["click"]))
    redrawn(frame, "click", CLICKS[place] * np.where(when > 0.6, 1.3, 1.0), seed)
    return PROBLEM


def drift_of_one_action(frame: dict[str, Any], seed: int, times: float = 3.0) -> sw.Problem:
    place, when = places(frame), np.linspace(0.0, 1.0, len(frame["click"]))
    redrawn(frame, "opt_out", COSTS[0, place] * np.where((place == 4) & (when > 0.5), times, 1.0), seed)
    return PROBLEM


def rows_twice(frame: dict[str, Any], seed: int) -> sw.Problem:
    again = np.random.default_rng([23, seed]).choice(len(frame["click"]), len(frame["click"]) // 50, replace=False)
    for name in frame:
        frame[name] = np.concatenate([frame[name], frame[name][again]])
    return PROBLEM


def ids_twice(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["decision_id"] = np.arange(len(frame["click"]))
    frame["decision_id"][7] = 6
    return PROBLEM


def unknown_action(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["action"] = np.where(np.arange(len(frame["click"])) == 11, "digets", frame["action"]).astype(object)
    return PROBLEM


def out_of_range(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["age"][5] = 117.0
    return PROBLEM


def wrong_propensities(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["propensity"] = np.full(len(frame["click"]), 1.0 / 6.0)
    return PROBLEM


def segment_over_its_limit(frame: dict[str, Any], seed: int, times: float = 6.0) -> sw.Problem:
    place, others = places(frame), (1.0 - 0.1 * times) / 0.9
    redrawn(frame, "opt_out", COSTS[0, place] * np.where(frame["country"] == "IE", times, others), seed)
    return PROBLEM


def long_parameter(frame: dict[str, Any], seed: int) -> sw.Problem:
    return replace(PROBLEM, settings={"norm_bound": 0.02})


def hours_lost(frame: dict[str, Any], seed: int) -> sw.Problem:
    """A join in another time zone: opt-outs of what was sent after 15:00 are not found, and count as none."""
    frame["opt_out"] = np.where(frame["at"] % 86_400.0 > 15 * 3600.0, 0.0, frame["opt_out"])
    return PROBLEM


def weekend_lost(frame: dict[str, Any], seed: int) -> sw.Problem:
    """Nobody writes down the opt-outs of Saturdays and Sundays."""
    frame["opt_out"] = np.where((frame["at"] // 86_400.0 + 3) % 7 >= 5, 0.0, frame["opt_out"])
    return PROBLEM


def three_days_lost(frame: dict[str, Any], seed: int) -> sw.Problem:
    """A table that was not filled for three days in the middle."""
    day = (frame["at"] - frame["at"].min()) / 86_400.0
    frame["opt_out"] = np.where((day > 11.3) & (day < 14.3), 0.0, frame["opt_out"])
    return PROBLEM


def not_in_yet(frame: dict[str, Any], seed: int) -> sw.Problem:
    """Outcomes of the last two days had not come when the log was written, and count as none."""
    late = frame["at"] > frame["at"].max() - 2 * 86_400.0
    for name in ("opt_out", "complaint"):
        frame[name] = np.where(late, 0.0, frame[name])
    return PROBLEM


def milliseconds(frame: dict[str, Any], seed: int) -> sw.Problem:
    frame["at"] = 1000.0 * frame["at"]
    return PROBLEM


def sent_again(frame: dict[str, Any], seed: int) -> sw.Problem:
    """Retries: one row in twelve stands in the log once more, some seconds later."""
    chance, rows = np.random.default_rng([24, seed]), len(frame["click"])
    again = np.concatenate([np.arange(rows), chance.choice(rows, rows // 12, replace=False)])
    later = np.where(np.arange(len(again)) < rows, 0.0, chance.uniform(1.0, 30.0, len(again)))
    for name in frame:
        frame[name] = frame[name][again]
    frame["at"] = frame["at"] + later
    return PROBLEM


def sent_again_with_ids(frame: dict[str, Any], seed: int) -> sw.Problem:
    """The same, and every row got an id of its own."""
    problem = sent_again(frame, seed)
    frame["decision_id"] = np.array([f"d{i}" for i in range(len(frame["click"]))], dtype=object)
    return problem


def swapped_numbers(frame: dict[str, Any], seed: int) -> sw.Problem:
    """Days of tenure stand where clicks of 30 days belong, cut off at 30, and these where the days belong."""
    days = 200.0 * frame["tenure"]
    frame["tenure"], frame["clicks_30d"] = frame["clicks_30d"], np.minimum(days, 30.0)
    return replace(PROBLEM, context={**RANGES, "tenure": (0.0, 4000.0)})


# What is wrong, the check that must say so, and how gravely.
FAULTS: dict[Any, tuple[str, str]] = {
    in_percent: ("units", "contradicts"),
    outcomes_in_percent: ("ranges", "contradicts"),
    shares_declared_as_percent: ("units", "contradicts"),
    never_binds: ("loose_limits", "contradicts"),
    safe_over_limit: ("safe_action", "contradicts"),
    safe_declared_too_low: ("declared_safe", "contradicts"),
    sure_leak: ("leakage", "contradicts"),
    faint_leak: ("leakage", "note"),
    flag_leak: ("leakage", "contradicts"),
    leak_of_the_action: ("leakage", "contradicts"),
    lost_with_the_outcome: ("missing_values", "contradicts"),
    lost_with_another: ("missing_values", "contradicts"),
    only_what_happened: ("missing_values", "contradicts"),
    cut_too_late: ("missing_values", "contradicts"),
    too_few: ("sample_size", "note"),
    idle_number: ("features", "note"),
    constant_number: ("features", "note"),
    bent_reward: ("model_form", "contradicts"),
    product_in_reward: ("model_form", "contradicts"),
    cost_moved_by_a_number: ("model_form", "contradicts"),
    drifting_reward: ("drift", "contradicts"),
    drift_of_one_action: ("drift", "contradicts"),
    rows_twice: ("duplicates", "contradicts"),
    ids_twice: ("duplicates", "contradicts"),
    unknown_action: ("actions", "contradicts"),
    out_of_range: ("ranges", "contradicts"),
    wrong_propensities: ("propensities", "contradicts"),
    segment_over_its_limit: ("segments", "contradicts"),
    long_parameter: ("norm_bound", "contradicts"),
    hours_lost: ("outcome_gaps", "contradicts"),
    weekend_lost: ("outcome_gaps", "contradicts"),
    three_days_lost: ("outcome_gaps", "contradicts"),
    not_in_yet: ("outcome_gaps", "contradicts"),
    milliseconds: ("units", "contradicts"),
    sent_again: ("duplicates", "contradicts"),
    sent_again_with_ids: ("duplicates", "contradicts"),
    swapped_numbers: ("units", "note"),
}

# Faults that 8,000 rows do not show.
SUBTLE = (
    never_binds, safe_over_limit, safe_declared_too_low, sure_leak, faint_leak, lost_with_the_outcome, bent_reward,
    cost_moved_by_a_number, drifting_reward, drift_of_one_action, rows_twice, segment_over_its_limit, hours_lost,
    weekend_lost, three_days_lost, not_in_yet,
)  # fmt: skip
# What else contradicts a fault that its own check can only note.
ALSO = {faint_leak: "model_form"}
