"""Safety as a statistic: among many seeded runs, those that ever violate are no more than δ allows.

A run violates when the true expected cost of any of its rounds is above its threshold: that of the point played on
rays, that of the mixture otherwise. The noise is exactly as declared, and the bound on the parameters is attained.

In random worlds violations are much rarer than δ, because a confidence set that fails seldom does so where a policy
plays. The tight worlds leave no such luck: there a run violates as often as an interval fails.

All of it is behind `make test-slow`, because its loops take minutes to compile. The ordinary tests have certificates
(reproduction/tests/test_certificates.py), which count violations of every policy and refute their controls.
"""

import pytest
from tests.chance import allowed
from tests.statistics.counting import DELTA, TIGHT, violating
from tests.statistics.families import among, among_arms, arm_world, linear_world, tight_arms, tight_world

from stagewise import LCLUCB, OPLB, ROFUL, SafeArmPosteriorSampling, SafeLTS, SafePosteriorSampling

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

PROMISED = {
    "LC-LUCB": among(linear_world, LCLUCB),
    "ROFUL": among(linear_world, ROFUL),
    "Safe-LTS": among(linear_world, SafeLTS),
    "OPLB": among(linear_world, OPLB),
    "directional OPLB": among(linear_world, OPLB, optimism="directional"),
    "CAPS": among(linear_world, SafePosteriorSampling),
    "CAPS, mixtures": among(linear_world, SafePosteriorSampling, mixtures=True),
    "CAPS, unknown baseline": among(linear_world, SafePosteriorSampling, known=False),
    "CAPS, mixtures, unknown baseline": among(linear_world, SafePosteriorSampling, known=False, mixtures=True),
    "CAPS, tight": among(tight_world, SafePosteriorSampling, mean_cost_bound=None, check_assumptions=False),
    "CAPS, mixtures, tight": among(
        tight_world, SafePosteriorSampling, mixtures=True, mean_cost_bound=None, check_assumptions=False
    ),
    "LC-LUCB, per-action bounds": among(linear_world, LCLUCB, per_action_bounds=True),
    "ROFUL, per-action bounds": among(linear_world, ROFUL, per_action_bounds=True),
    "OPLB, per-action bounds": among(linear_world, OPLB, per_action_bounds=True),
    "LC-LUCB, per-action bounds, unknown baseline": among(linear_world, LCLUCB, known=False, per_action_bounds=True),
    "ROFUL, per-action bounds, unknown baseline": among(linear_world, ROFUL, known=False, per_action_bounds=True),
    "OPLB, per-action bounds, unknown baseline": among(linear_world, OPLB, known=False, per_action_bounds=True),
    "LC-LUCB, per-action bounds, tight": among(
        tight_world, LCLUCB, per_action_bounds=True, mean_cost_bound=None, check_assumptions=False
    ),
    "OPLB, per-action bounds, tight": among(
        tight_world, OPLB, per_action_bounds=True, mean_cost_bound=None, check_assumptions=False
    ),
    "CAPS over arms": among_arms(arm_world, kind=SafeArmPosteriorSampling),
    "CAPS over arms, kl": among_arms(arm_world, interval="kl", kind=SafeArmPosteriorSampling),
    "OPB, rates": among_arms(arm_world, interval="rates"),
    "CAPS over arms, unknown baseline": among_arms(arm_world, known=False, kind=SafeArmPosteriorSampling),
    "CAPS over arms, tight": among_arms(tight_arms, split_delta=False, kind=SafeArmPosteriorSampling),
    "OPB": among_arms(arm_world, interval="hoeffding"),
    "directional OPB": among_arms(arm_world, optimism="directional"),
    "OPB, kl": among_arms(arm_world, interval="kl"),
    "OPB, kl, unknown baseline": among_arms(arm_world, known=False, interval="kl"),
    "LC-LUCB, unknown baseline": among(linear_world, LCLUCB, known=False),
    "ROFUL, unknown baseline": among(linear_world, ROFUL, known=False),
    "OPLB, unknown baseline": among(linear_world, OPLB, known=False),
    "OPB, unknown baseline": among_arms(arm_world, known=False, interval="hoeffding"),
    "LC-LUCB, tight": among(tight_world, LCLUCB, **TIGHT),
    "Safe-LTS, tight": among(tight_world, SafeLTS, **TIGHT),
    "OPLB, tight": among(tight_world, OPLB, **TIGHT),
    "OPB, tight": among_arms(tight_arms, split_delta=False, interval="hoeffding"),
    "OPB, kl, tight": among_arms(tight_arms, split_delta=False, interval="kl"),
}
OVERCONFIDENT = {
    "LC-LUCB told a tenth of the noise": among(linear_world, LCLUCB, declared=0.1),
    "ROFUL told a tenth of the noise": among(linear_world, ROFUL, declared=0.1),
    "OPLB told a tenth of the noise": among(linear_world, OPLB, declared=0.1),
    "CAPS told a tenth of the noise": among(linear_world, SafePosteriorSampling, declared=0.1),
    "CAPS told six tenths, tight": among(
        tight_world, SafePosteriorSampling, declared=0.6, mean_cost_bound=None, check_assumptions=False
    ),
    "CAPS, mixtures, told six tenths, tight": among(
        tight_world, SafePosteriorSampling, declared=0.6, mixtures=True, mean_cost_bound=None, check_assumptions=False
    ),
    "LC-LUCB, per-action bounds, told six tenths, tight": among(
        tight_world, LCLUCB, declared=0.6, per_action_bounds=True, mean_cost_bound=None, check_assumptions=False
    ),
    "OPLB, per-action bounds, told six tenths, tight": among(
        tight_world, OPLB, declared=0.6, per_action_bounds=True, mean_cost_bound=None, check_assumptions=False
    ),
    "OPB told a tenth of the noise": among_arms(arm_world, noise=0.05, check_assumptions=False),
    "LC-LUCB told six tenths, tight": among(tight_world, LCLUCB, declared=0.6, **TIGHT),
    "Safe-LTS told six tenths, tight": among(tight_world, SafeLTS, declared=0.6, **TIGHT),
    "OPLB told six tenths, tight": among(tight_world, OPLB, declared=0.6, **TIGHT),
    "CAPS over arms told four tenths, tight": among_arms(
        tight_arms,
        noise=0.2,
        interval="hoeffding",
        split_delta=False,
        check_assumptions=False,
        kind=SafeArmPosteriorSampling,
    ),
    "OPB told four tenths, tight": among_arms(tight_arms, noise=0.2, split_delta=False, check_assumptions=False),
}


@pytest.mark.parametrize("name", PROMISED)
def test_of_a_hundred_runs_few_violate(name: str) -> None:
    assert violating(PROMISED[name], 100, 300) <= allowed(100, DELTA)


@pytest.mark.parametrize("name", PROMISED)
def test_of_two_thousand_runs_no_more_violate_than_delta_allows(name: str) -> None:
    count = violating(PROMISED[name], 2000, 2000)
    print(f"{name}: {count} of 2000 runs violate, {allowed(2000, DELTA)} may")  # pytest -rP shows it
    assert count <= allowed(2000, DELTA)


@pytest.mark.parametrize("name", OVERCONFIDENT)
def test_a_policy_that_is_told_too_little_noise_violates_in_too_many_runs(name: str) -> None:
    assert violating(OVERCONFIDENT[name], 100, 300) > allowed(100, DELTA)
