"""Off-policy estimates beside those of `obp`, on its own sample of the Open Bandit data: they must be the same numbers.

.venv-bench/bin/python benchmarks/evaluation.py          # the table of both, and the largest difference
.venv-bench/bin/python benchmarks/evaluation.py speed    # a million rows

obp 0.4.0 is pure Python and needs no torch; its reader of the sample does not know pandas 3, so the
files are read here.
"""

import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.estimators import assign_parts, build_features, predict_outcomes

PLACES = 3
CAMPAIGNS = {"all": 80, "men": 34, "women": 46}  # and how many items each has
TOLERANCE = 1e-9


def sample(policy: str, campaign: str) -> dict[str, Any]:
    """Return the columns of a log that obp brings with it."""
    import obp.dataset

    index = Path(obp.dataset.__file__).parent / "obd" / policy / campaign / f"{campaign}.csv"
    with index.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    # within a second the sample's rows have no order of their own: both count them as they stand
    return {
        "at": np.arange(len(rows)),
        "action": np.array([f"item {int(row['item_id'])}" for row in rows], dtype=object),
        "place": np.array([f"place {int(row['position'])}" for row in rows], dtype=object),
        "click": np.array([float(row["click"]) for row in rows]),
        "hidden": np.zeros(len(rows)),
        "propensity": np.array([float(row["propensity_score"]) for row in rows]),
    }


def both(name: str, frame: dict[str, Any], candidate: Any) -> list[tuple[str, str, float, float]]:
    """Return each estimate by us and by obp; `candidate` (items, places) are probabilities."""
    from obp.ope import DoublyRobust, InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

    items = len(candidate)
    problem = sw.Problem(
        action_names=[f"item {i}" for i in range(items)],
        safe_name="item 0",
        reward=sw.Reward("click", by="place", model="rates"),
        limits={"hidden": sw.Limit(0.5, safe_bound=0.0, model="rates")},
    )
    log = Log.of(frame, problem)
    indices = np.array([int(text.split()[1]) for text in frame["place"]]) - 1
    ours = sw.evaluate_on_log(log, problem, candidate[:, indices].T)
    expected = predict_outcomes(build_features(log), log.actions, frame["click"], items, assign_parts(log.rows))
    settings: dict[str, Any] = {
        "reward": frame["click"].astype(int),
        "action": log.actions,
        "position": indices,
        "pscore": frame["propensity"],
        "action_dist": np.broadcast_to(candidate, (log.rows, items, PLACES)),
    }
    regression = np.repeat(expected[:, :, None], PLACES, axis=2)
    theirs = {
        "ips": InverseProbabilityWeighting().estimate_policy_value(**settings),
        "snips": SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**settings),
        "dr": DoublyRobust().estimate_policy_value(**settings, estimated_rewards_by_reg_model=regression),
    }
    found = {by: ours["click"][by].value for by in theirs}
    return [(name, by, float(found[by] if found[by] is not None else "nan"), theirs[by]) for by in theirs]


def compare() -> None:
    """Print the table."""
    import obp
    from obp.policy import BernoulliTS

    rows = []
    for campaign, items in CAMPAIGNS.items():
        settings: dict[str, Any] = {"is_zozotown_prior": True, "campaign": campaign, "random_state": 12345}
        sampler = BernoulliTS(n_actions=items, len_list=PLACES, **settings)
        thompson = sampler.compute_batch_action_dist(n_rounds=1, n_sim=20_000)[0]
        rows += both(f"uniform, {campaign}: Thompson sampling", sample("random", campaign), thompson)
        evenly = np.full((items, PLACES), 1.0 / items)
        rows += both(f"Thompson sampling, {campaign}: uniform", sample("bts", campaign), evenly)
    print(f"obp {obp.__version__}, its own sample of 10,000 rows\n")
    print("| log and candidate | by | ours | obp | difference |\n|---|---|---|---|---|")
    for name, by, ours, theirs in rows:
        print(f"| {name} | {by} | {ours:.12f} | {theirs:.12f} | {abs(ours - theirs):.1e} |")
    largest = max(abs(ours - theirs) for _, _, ours, theirs in rows)
    print(f"\nlargest difference: {largest:.1e}, allowed: {TOLERANCE:g}")
    if not largest <= TOLERANCE:
        raise SystemExit(1)


def speed(rows: int = 1_000_000) -> None:
    """Print how long a million rows take."""
    rng = np.random.default_rng(20261117)
    problem = sw.Problem(
        action_names=["nothing", "digest", "offer", "sale"],
        safe_name="nothing",
        context={"age": (18, 99)},
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")},
    )
    actions = rng.integers(4, size=rows)
    frame = {
        "action": np.array(problem.action_names, dtype=object)[actions],
        "age": rng.integers(18, 100, size=rows).astype(float),
        "click": (rng.random(rows) < 0.05 + 0.02 * actions) * 1.0,
        "opt_out": (rng.random(rows) < 0.005 * actions) * 1.0,
    }
    log = Log.of(frame, problem)
    sw.evaluate_on_log({name: column[:100] for name, column in frame.items()}, problem)  # everything is loaded by now
    for estimators, primary in ((["ips", "snips"], "ips"), (["ips", "snips", "dr"], "dr")):
        began = time.process_time()
        sw.evaluate_on_log(log, problem, "offer", propensity=0.25, estimators=estimators, primary_estimator=primary)
        took = time.process_time() - began
        print(f"{rows:,} rows, {', '.join(estimators)}, two signals, three policies: {took:.2f} s of processor time")


if __name__ == "__main__":
    speed() if "speed" in sys.argv[1:] else compare()
