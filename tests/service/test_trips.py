"""The test that trips a desk by itself: it seldom does so by chance, and soon where there is cause."""

import numpy as np
import pytest
from tests.chance import allowed
from tests.service.logs import Log, problem

import stagewise as sw
from stagewise.service.fold import Fold
from stagewise.service.silences import Silences
from stagewise.service.versions import first, following


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


SECOND = 10**6


def folded(log: Log, seconds: float | None = 600.0, at: int = 0) -> Fold:
    """Return what is known after a log, cut in one way and in another, and from a snapshot in between."""
    told = problem(limits={"opt_out": sw.Limit(0.05, safe=0.001, window="1h")})
    folds = [Fold(told, 1, dry_after=seconds) for _ in range(3)]
    folds[0].take(log.events)
    half = at or len(log.events) // 2
    folds[1].take(log.events[:half])
    folds[2].restore(folds[1].whole())
    for event in log.events[half:]:
        folds[2].take([event])
    assert folds[2].whole() == folds[0].whole()
    return folds[0]


def idle(log: Log, since: int, seconds: int) -> int:
    """Let so much time pass on a desk that runs, and to which nobody says anything; return when it is over."""
    for i in range(0, seconds, 30):
        log.add("tick", {}, since + i * SECOND)
    return since + seconds * SECOND


def test_feedback_dries_up_only_after_it_was_silent_for_so_long() -> None:
    log, now = Log(), 10**15
    for i in range(150):
        log.decide("nothing", now + i)
    now = idle(log, now, 500)
    assert folded(log).dried() is None  # an experiment that has just begun
    now = idle(log, now, 300)
    assert "no outcome has come since 150 decisions" in str(folded(log).dried())
    assert folded(log, None).dried() is None  # nobody asked for it
    log.add("control", {"what": "revive", "actor": "ada", "reason": "so"}, now)
    for _ in range(150):
        log.decide("nothing", now)
    now = idle(log, now, 500)
    assert folded(log).dried() is None  # a person has just revived it
    now = idle(log, now, 300)
    assert folded(log).dried() is not None
    log.tell(299, now, click=0.0)
    assert folded(log).dried() is None


def stopped(before: int, after: int, told: float | None, seed: int = 5) -> str | None:
    """Return what is said where opt-outs come of 3 % for a while, and then as `told` says, while clicks go on."""
    log, rng, now = Log(), np.random.default_rng(seed), 10**15
    for i in range(before + after):
        now += SECOND
        place = log.decide("offer" if i % 2 else "nothing", now)
        values = {"click": float(rng.random() < 0.1)}
        if i % 2 and i < before:
            values["opt_out"] = float(rng.random() < 0.03)
        elif i % 2 and told is not None:
            values["opt_out"] = told
        log.tell(place, now, **values)
    return folded(log, at=before + 7).dried()


@pytest.mark.parametrize("told", [None, 0.0])
def test_a_feed_of_costs_that_dies_is_noticed_while_others_go_on(told: float | None) -> None:
    """Costs that nobody tells count as none: without this, all would look cheap from then on."""
    why = str(stopped(2000, 2000, told))
    assert "no 'opt_out' has come within 600 s of the last" in why
    assert "decisions for 'offer'" in why
    assert len(why) < 400
    assert stopped(2000, 500, told) is None  # what was decided since may still be heard of


def test_what_comes_of_decisions_before_a_revival_is_no_hearing_after_it() -> None:
    log, now = Log(), 10**15
    place = log.decide("offer", now)
    log.add("control", {"what": "revive", "actor": "ada", "reason": "so"}, now + SECOND)
    log.tell(place, now + 2 * SECOND, click=1.0)
    log.decide("offer", now + 3 * SECOND)
    log.tell(place, now + 4 * SECOND, opt_out=1.0)
    idle(log, now + 5 * SECOND, 900)
    fold = folded(log)
    assert fold.dried() is None
    assert fold.silences is not None
    assert fold.silences.decisions == [0, 0, 1]
    assert fold.silences.heard == [[[0, 0]] * 3] * 2


class Shop:
    """A desk whose clicks come of one decision in two, two minutes after it."""

    def __init__(self) -> None:
        self.log, self.now, self.rng = Log(), 10**15, np.random.default_rng(0)
        self.coming: list[tuple[int, int]] = []

    def open(self, seconds: int, action: str | None = "offer", told: bool = True) -> None:
        """Decide once a second, or not at all."""
        for _ in range(seconds):
            self.now += SECOND
            while told and self.coming and self.coming[0][0] <= self.now:
                self.log.tell(self.coming.pop(0)[1], self.now, click=float(self.rng.random() < 0.5), opt_out=0.0)
            if action is not None:
                self.coming.append((self.now + 120 * SECOND, self.log.decide(action, self.now)))
            elif self.now % (30 * SECOND) == 0:
                self.log.add("tick", {}, self.now)

    def never_alarmed(self) -> bool:
        told = problem(limits={"opt_out": sw.Limit(0.05, safe=0.001, window="1h")})
        fold = Fold(told, 1, dry_after=600.0)
        for i in range(0, len(self.log.events), 20):
            fold.take(self.log.events[i : i + 20])
            if fold.dried() is not None:
                return False
        return True


def test_a_night_is_no_silence() -> None:
    shop = Shop()
    shop.open(2000)
    shop.open(200, None)
    shop.now += 8 * 3600 * SECOND
    shop.open(900)
    assert shop.never_alarmed()
    shop.open(1500, told=False)
    assert not shop.never_alarmed()


def test_an_action_that_is_not_played_for_a_while_is_not_silent() -> None:
    shop = Shop()
    shop.open(2000)
    shop.open(3600, "nothing")
    shop.open(900)
    assert shop.never_alarmed()


def test_a_desk_that_was_down_gives_decisions_their_time_when_it_is_back() -> None:
    """Nobody could tell it anything meanwhile: what is told when it is back counts."""
    shop = Shop()
    shop.open(2000)
    shop.now += 2 * 3600 * SECOND  # 120 decisions wait for what is told late
    shop.open(900)
    assert shop.never_alarmed()


def test_a_feed_that_is_always_slower_than_it_may_be_is_not_watched() -> None:
    log, now = Log(), 10**15
    for i in range(3000):
        now += SECOND
        log.decide("offer", now)
        if i >= 900:
            log.tell(i - 900, now, click=1.0, opt_out=0.0)
    assert folded(log).dried() is None


def test_silence_by_chance_is_not_taken_for_a_dead_feed() -> None:
    """Feeds of 1 % with lags, looked at after every decision: at most as many alarm as the level says."""
    rng, alarms = np.random.default_rng(11), 0
    for _ in range(200):
        silences, coming = Silences(1, 1, 0.1, 16e-6), dict[int, int]()  # a slot is a microsecond
        for i, heard in enumerate(rng.random(1500) < 0.01):
            silences.passed(i)
            silences.decide(i, 0)
            if heard:
                coming[i + int(rng.integers(30))] = i  # some come too late
            if i in coming:
                silences.hear(coming[i], 0, 0)
            if silences.longest() is not None:
                alarms += 1
                break
    assert alarms <= allowed(200, 0.1)
