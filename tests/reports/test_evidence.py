"""Intervals for a share of runs: as exact as they say, at the planned end and at any other moment."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.chance import allowed

from stagewise.models.intervals import compute_kl_upper
from stagewise.reports.evidence import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    assess_evidence,
    clopper_pearson,
    compute_runs_needed,
)


@pytest.mark.parametrize(("occurrences", "runs"), [(0, 50), (3, 200), (50, 50), (17, 40)])
def test_clopper_pearson_leaves_half_its_error_beyond_either_end(occurrences: int, runs: int) -> None:
    low, high = clopper_pearson(occurrences, runs, 0.02)
    if occurrences > 0:
        assert binom.sf(occurrences - 1, runs, low) == pytest.approx(0.01)
    if occurrences < runs:
        assert binom.cdf(occurrences, runs, high) == pytest.approx(0.01)


@pytest.mark.parametrize("truth", [0.01, 0.05, 0.2])
def test_the_exact_interval_holds_as_often_as_it_says(truth: float) -> None:
    runs, error = 300, 0.1
    counts = np.arange(runs + 1)
    outside = [not low <= truth <= high for low, high in (clopper_pearson(int(k), runs, error) for k in counts)]
    assert binom.pmf(counts, runs, truth)[outside].sum() <= error


@pytest.mark.compiled
def test_the_anytime_interval_holds_at_all_times_at_once() -> None:
    rng, truth, confidence = np.random.default_rng(7), 0.05, 0.8  # each interval takes a tenth
    failing = 0
    for _ in range(400):
        sums = np.cumsum(rng.uniform(size=600) < truth)
        for runs in range(1, 601, 3):
            low, high = assess_evidence(int(sums[runs - 1]), runs, truth, confidence, False)["anytime"]
            if not low <= truth <= high:
                failing += 1
                break
    assert failing <= allowed(400, 0.1)
    assert failing > 0


def test_a_verdict_is_what_the_interval_says() -> None:
    assert assess_evidence(0, 50, 0.05, 0.999, False)["verdict"] == UNDECIDED
    assert assess_evidence(0, 1000, 0.05, 0.999, False)["verdict"] == SUPPORTED
    assert assess_evidence(200, 1000, 0.05, 0.999, False)["verdict"] == REFUTED
    assert assess_evidence(30, 1000, 0.05, 0.999, False)["exact"] is None


def test_the_exact_interval_may_decide_where_all_runs_were_played() -> None:
    early, late = assess_evidence(0, 170, 0.05, 0.999, False), assess_evidence(0, 170, 0.05, 0.999, True)
    assert (early["verdict"], late["verdict"]) == (UNDECIDED, SUPPORTED)


def test_the_runs_needed_are_enough_and_no_more_than_needed() -> None:
    needed = assess_evidence(4, 200, 0.05, 0.999, False)["runs_needed"]
    assert needed is not None
    ends = [compute_kl_upper(float(runs), 0.02, math.log(2000.0)) for runs in (needed - 1, needed)]
    assert ends[0] > 0.05 >= ends[1]
    assert compute_runs_needed(0.05, 0.05, 0.999) is None
    assert compute_runs_needed(0.2, 0.05, 0.999) is None
