"""Schedules by seed: what clients were told holds in each, a seed replays to the byte, and planted bugs are found."""

import pytest
from tests.server.simulated.world import PLANTS, play

SEEDS = range(24)
NIGHT = range(1_000, 3_000)
FOUND = {  # what shows a planted bug; rejected: the CHECK of the table
    "cache": {"rejected", "order"},
    "early_answer": {"lost"},
    "early_number": {"rejected"},
    "unread_controls": {"disobeyed", "not_in_effect"},
    "skipped_seal": {"fold"},
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_schedule_passes(seed: int) -> None:
    assert play(seed).violations == frozenset()


def test_schedules_have_something_to_lose() -> None:
    results = [play(seed) for seed in SEEDS[:4]]
    assert sum(one.decisions for one in results) > 200
    assert sum(one.crashes for one in results) > 0


def test_a_seed_replays_to_the_byte() -> None:
    first, again, other = play(3), play(3), play(4)
    assert first == again
    assert first.digest != other.digest


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_found_in_each_of_two_schedules(plant: str) -> None:
    for seed in SEEDS[:2]:
        result = play(seed, plant)
        found = result.violations | ({"rejected"} if result.rejected else set())
        assert found & FOUND[plant], f"seed {seed}"


@pytest.mark.slow
def test_many_schedules_pass() -> None:
    assert [seed for seed in NIGHT if play(seed).violations] == []
