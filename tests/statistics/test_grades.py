"""Safety of OPLB's cone program as a statistic, as in `test_safety`; it calls a solver, so Python plays it."""

import pytest
from tests.chance import allowed
from tests.statistics.counting import DELTA, TIGHT, violating
from tests.statistics.families import among, linear_world, tight_world

from stagewise import OPLB

pytestmark = pytest.mark.compiled

PROMISED = {
    "cones": among(linear_world, OPLB, method="socp"),
    "cones, unknown baseline": among(linear_world, OPLB, known=False, method="socp"),
    "cones, tight": among(tight_world, OPLB, method="socp", **TIGHT),
}
OVERCONFIDENT = {
    "cones told a tenth of the noise": among(linear_world, OPLB, declared=0.1, method="socp"),
}


@pytest.mark.parametrize("name", ["cones", "cones, tight"])  # an unknown baseline takes 300 rounds to learn
def test_of_a_hundred_runs_few_violate(name: str) -> None:
    assert violating(PROMISED[name], 100, 20) <= allowed(100, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rounds"), [("cones", 40), ("cones, tight", 40), ("cones, unknown baseline", 300)])
def test_of_two_thousand_runs_few_violate(name: str, rounds: int) -> None:
    assert violating(PROMISED[name], 2000, rounds) <= allowed(2000, DELTA)


@pytest.mark.parametrize("name", OVERCONFIDENT)
def test_with_too_little_noise_declared_too_many_violate(name: str) -> None:
    assert violating(OVERCONFIDENT[name], 100, 30) > allowed(100, DELTA)
