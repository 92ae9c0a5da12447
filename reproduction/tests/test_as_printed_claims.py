"""Claims about the printed forms, about exploring first and about the lower bound follow the results."""

import math
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.beyond.as_printed import claims as printed_claims
from stagewise_reproduction.beyond.as_printed.plan import OURS, PRINTED, PROBLEMS, SAME_SETS, build_name
from stagewise_reproduction.beyond.lower_bound import claims as lower_claims
from stagewise_reproduction.beyond.lower_bound.plan import (
    GAPS,
    INFORMED,
    INSTANCES,
    POLICIES,
    UNLIMITED,
    compute_horizon,
)
from stagewise_reproduction.beyond.lower_bound.plan import build_name as lower_name
from stagewise_reproduction.beyond.safe_lucb import claims as explored_claims
from stagewise_reproduction.claim import FAILS, HOLDS, Claim


def made(regret: Any, rounds: int = 1_000, cost: float = 0.0, **more: Any) -> sw.Result:
    """Return runs with regret curves (runs, R), as a simulation would have them."""
    curve = np.atleast_2d(np.asarray(regret, dtype=float))
    runs, points = curve.shape
    ends = np.linspace(rounds / points, rounds, points).astype(np.int64)
    flat = np.ones((runs, points))
    reward = flat - np.diff(curve, axis=1, prepend=0.0) / np.diff(ends, prepend=0)
    largest, none = np.full((runs, 1), cost), np.zeros(runs, dtype=np.int64)
    audit = {"optimism_failures": np.full(runs, more.pop("optimism_failures", 0))}
    about = {"cell": {"policy": more.pop("policy", "")}, "empty": more.pop("empty", [0]), **more}
    return sw.Result(ends, curve, reward, flat[..., None], largest, none, flat, np.arange(runs), about, audit)


STEPS = np.linspace(0.01, 1.0, 100)


def as_expected() -> dict[str, sw.Result]:
    """Return results under which every claim about the printed forms holds."""
    low, high = 10.0 * np.sqrt(np.outer([1.0, 1.1], STEPS)), 100.0 * np.outer([1.0, 1.1], STEPS)
    results = {build_name(problem, player): made(low) for problem in PROBLEMS for player in (PRINTED, OURS, SAME_SETS)}
    for problem in PROBLEMS:
        results[build_name(problem, PRINTED)] = made(high, empty=[3, 4])
    results[build_name("Algorithm 5", PRINTED)] = made(high, optimism_failures=500)
    return results


def verdicts(claims: list[Claim]) -> dict[str, str]:
    return {claim.name: claim.verdict for claim in claims}


def test_every_claim_about_the_printed_forms_can_hold_and_can_fail() -> None:
    right = verdicts(printed_claims.check("ours", as_expected()))
    assert set(right.values()) == {HOLDS}
    swapped = as_expected()
    for problem in PROBLEMS:
        one, other = build_name(problem, PRINTED), build_name(problem, OURS)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        swapped[build_name(problem, SAME_SETS)] = swapped[other]
    swapped[build_name("LC-LUCB", PRINTED)] = made(STEPS, optimism_failures=1)
    swapped[build_name("OPLB", PRINTED)] = made(STEPS, optimism_failures=1)
    swapped[build_name("LC-LUCB on points", PRINTED)] = made(STEPS, cost=0.1)
    swapped[build_name("LC-LUCB on points", OURS)] = made(1_000.0 * STEPS)
    swapped[build_name("OPNLB", OURS)] = made(1_000.0 * STEPS)
    swapped[build_name("Algorithm 5, d = 10", PRINTED)] = made(STEPS, empty=[0])
    for result in swapped.values():
        result.violations[:] = 1
    wrong = verdicts(printed_claims.check("ours", swapped))
    assert [name for name, word in wrong.items() if word == HOLDS] == []


@pytest.mark.parametrize(("exponent", "word"), [(2 / 3, HOLDS), (0.3, FAILS)])
def test_exploring_first_is_judged_by_how_regret_grows(exponent: float, word: str) -> None:
    results = {}
    for rounds in (1_000, 8_000):
        for policy, size in (("Safe-LUCB", float(rounds) ** exponent), ("LC-LUCB", float(rounds) ** 0.1)):
            results[f"{policy}-{rounds}"] = made(size * np.minimum(STEPS / 0.05, 1.0), rounds, policy=policy)
    claims = explored_claims.check("ours", results)
    assert [claim.verdict for claim in claims if "grows faster than" in claim.name] == [word]
    assert explored_claims.compute_growth(explored_claims.group_by_horizon(results, "Safe-LUCB")) == pytest.approx(
        exponent
    )
    assert explored_claims.compute_exploration_share(results["Safe-LUCB-8000"]) == pytest.approx(1.0)


def test_the_lower_bound_s_claims_can_fail() -> None:
    def results(kept: float, known: float, free: float) -> dict[str, sw.Result]:
        found = {}
        for gap in GAPS:
            for which in INSTANCES:
                for policy in (*POLICIES, UNLIMITED, INFORMED):
                    size = {UNLIMITED: free, INFORMED: known}.get(policy, kept) / gap**2
                    found[lower_name(policy, gap, which)] = made(size * STEPS, compute_horizon(gap), policy=policy)
        return found

    right = verdicts(lower_claims.check("ours", results(4.0, 0.3, -1.0)))
    assert set(right.values()) == {HOLDS}
    wrong = lower_claims.check("ours", results(0.01, 5.0, 1.0))
    assert {claim.verdict for claim in wrong if "above the lower bound" in claim.name} == {FAILS}
    assert {claim.verdict for claim in wrong if "UCB" in claim.name or "who knows" in claim.name} == {FAILS}
    never = lower_claims.check("ours", results(math.e * 8, 0.3, -1.0))
    assert {claim.verdict for claim in never if "never leaving" in claim.name} == {FAILS}
