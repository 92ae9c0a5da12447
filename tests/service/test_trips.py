"""The test that trips a desk by itself: it seldom does so by chance, and soon where there is cause."""

import numpy as np
import pytest
from tests.chance import allowed
from tests.service.logs import MINUTE, Log, problem

import stagewise as sw
from stagewise.service.fold import Fold
from stagewise.service.learner import Learner
from stagewise.service.silences import Silences
from stagewise.service.trips import Trip
from stagewise.service.versions import first, following


def share(rate: float, runs: int, length: int) -> int:
    rng = np.random.default_rng(7)
    return sum(Trip(0.02, 0.05).take((rng.random(length) < rate).astype(float)) for _ in range(runs))


def test_costs_at_their_limit_trip_it_no_more_often_than_told() -> None:
    assert share(0.02, 1000, 3000) <= allowed(1000, 0.05)


def test_costs_at_twice_their_limit_trip_it() -> None:
    assert share(0.04, 50, 3000) >= 48


def test_it_does_not_depend_on_how_costs_are_cut() -> None:
    costs = (np.random.default_rng(1).random(500) < 0.03).astype(float)
    whole, parts = Trip(0.02, 0.01), Trip(0.02, 0.01)
    whole.take(costs)
    for part in np.array_split(costs, 37):
        parts.take(part)
    assert whole.plain() == parts.plain()


def test_it_is_lost_for_good() -> None:
    trip = Trip(0.02, 0.01)
    assert trip.take(np.ones(10))
    assert trip.take(np.zeros(5000))
    other = Trip(0.02, 0.01)
    other.restore(trip.plain())
    assert other.tripped
    assert other.plain() == pytest.approx(trip.plain(), rel=0)


def told(value: float) -> sw.Problem:
    return problem(limits={"opt_out": sw.Limit(value, safe=0.001)})


def campaign(*limits: float, then: float) -> Fold:
    """Return what is known after 400 decisions under each of these limits, with 15 % of opt-outs, by a last version."""
    log, rng, version = Log(), np.random.default_rng(3), first(told(limits[0]))
    for limit in (*limits, then):
        version = following(version, told(limit))
        log.add("problem", {"problem": told(limit).plain()}, 0)
        for _ in range(400 if limit in limits else 0):
            log.tell(log.decide("nothing", 0), 0, click=0.0, opt_out=float(rng.random() < 0.15))
    folds = [Fold(version.problem, version.number) for _ in range(3)]
    folds[0].take(log.events)
    folds[1].take(log.events[:500])
    folds[2].restore(folds[1].whole())
    folds[2].take(log.events[500:])
    assert folds[2].whole() == folds[0].whole()
    return folds[0]


def test_decisions_are_held_against_the_limit_they_were_made_under() -> None:
    assert campaign(0.2, then=0.05).trips.tripped() is None  # nobody had promised 5 % of these
    assert campaign(0.05, then=0.2).trips.tripped() is not None
    assert campaign(0.2, 0.05, then=0.3).trips.tripped() is not None


def test_feedback_dries_up_only_after_it_was_silent_for_so_long() -> None:
    fold, hour = Fold(problem(), 1), 60 * MINUTE
    log = Log()
    for i in range(150):
        log.decide("nothing", 10**15 + i)
    fold.take(log.events)
    learner = Learner(None, dict, lambda *_: None, list, alone=True, dry_after=3600.0)  # type: ignore[arg-type]
    assert learner.dried(fold, 10**15 + MINUTE) is None  # an experiment that has just begun
    assert "150 decisions" in str(learner.dried(fold, 10**15 + hour))
    log.add("control", {"what": "revive", "actor": "ada", "reason": "so"}, 10**15 + hour)
    for _ in range(150):
        log.decide("nothing", 10**15 + hour)
    fold.take(log.events[150:])
    assert learner.dried(fold, 10**15 + hour + MINUTE) is None  # a person has just revived it
    assert learner.dried(fold, 10**15 + 2 * hour) is not None


def stopped(before: int, after: int, told: float | None, seed: int = 5) -> tuple[Fold, int]:
    """Return what is known where opt-outs come of 3 % for a while, and then as `told` says, while clicks go on."""
    log, rng, now = Log(), np.random.default_rng(seed), 10**15
    for i in range(before + after):
        now += 10**6
        place = log.decide("offer" if i % 2 else "nothing", now)
        values = {"click": float(rng.random() < 0.1)}
        if i % 2 and i < before:
            values["opt_out"] = float(rng.random() < 0.03)
        elif i % 2 and told is not None:
            values["opt_out"] = told
        log.tell(place, now, **values)
    folds = [Fold(problem(limits={"opt_out": sw.Limit(0.05, safe=0.001, window="1h")}), 1) for _ in range(3)]
    folds[0].take(log.events)
    folds[1].take(log.events[: before + 7])
    folds[2].restore(folds[1].whole())
    folds[2].take(log.events[before + 7 :])
    assert folds[2].whole() == folds[0].whole()
    return folds[0], now


@pytest.mark.parametrize("told", [None, 0.0])
def test_a_feed_of_costs_that_dies_is_noticed_while_others_go_on(told: float | None) -> None:
    """Costs that nobody tells count as none: without this, all would look cheap from then on."""
    learner = Learner(None, dict, lambda *_: None, list, alone=True, dry_after=600.0)  # type: ignore[arg-type]
    fold, now = stopped(2000, 2000, told)
    assert fold.since_outcome == 0
    why = str(learner.dried(fold, now))
    assert "no 'opt_out' of 'offer' has come for" in why
    assert len(why) < 400
    assert learner.dried(stopped(2000, 60, told)[0], now) is None  # a minute
    learner.dry_after = None
    assert learner.dried(fold, now) is None  # nobody asked for it


def test_silence_by_chance_is_not_taken_for_a_dead_feed() -> None:
    """A hundred feeds of 1 %, looked at after every decision: at most as many alarm as the level says."""
    rng, alarms = np.random.default_rng(11), 0
    for _ in range(200):
        silences = Silences(1, 1, 0.1)
        for i, heard in enumerate(rng.random(1500) < 0.01):
            silences.decisions[0] += 1
            if heard:
                silences.hear(0, 0, i)
            if silences.longest(i, 0.0) is not None:
                alarms += 1
                break
    assert alarms <= allowed(200, 0.1)
