"""Schedules by seed on the real stores: an SQLite file that processes die with, and PostgreSQL by statements."""

import pytest
from tests.lacking import needed
from tests.server.simulated import file

FILE_SEEDS, POSTGRES_SEEDS = range(8), (1, 2)


@pytest.mark.parametrize("seed", FILE_SEEDS)
def test_a_schedule_on_a_file_passes(seed: int) -> None:
    assert file.play(seed).violations == frozenset()


def test_processes_die_with_the_file_and_a_seed_replays_to_the_byte() -> None:
    results = [file.play(seed) for seed in (1, 1, 2)]
    assert results[0] == results[1]
    assert results[0].digest != results[2].digest
    assert sum(one.crashes for one in results) > 0


@pytest.mark.parametrize("plant", file.PLANTS)
def test_a_bug_of_the_disk_is_found(plant: str) -> None:
    found = [file.play(seed, plant).violations for seed in (1, 2)]
    assert all("lost" in one for one in found)


@pytest.mark.parametrize("seed", POSTGRES_SEEDS)
def test_a_schedule_on_postgresql_passes(seed: int, postgres: str) -> None:
    needed("psycopg", "nothing was tried on PostgreSQL")
    from tests.server.simulated.postgres import play

    result = play(seed, postgres)
    assert result.violations == frozenset()
    assert result.rejected == 0
    assert result.decisions > 10
    assert result.turns > 100


def test_a_seed_replays_to_the_byte_on_postgresql() -> None:
    needed("psycopg", "nothing was tried on PostgreSQL")
    from tests.server.servers import server
    from tests.server.simulated.postgres import play

    first, again = (play(1, server().fresh()) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("plant", "found", "seed"), [("locks", "not_in_effect", 4), ("cache", "rejected", 1)])
def test_a_planted_bug_is_found_on_postgresql(plant: str, found: str, seed: int, postgres: str) -> None:
    needed("psycopg", "nothing was tried on PostgreSQL")
    from tests.server.simulated.postgres import play

    result = play(seed, postgres, plant)
    assert found in result.violations | ({"rejected"} if result.rejected else set())
