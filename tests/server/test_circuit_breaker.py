"""The test that trips a server by itself: it seldom does so by chance, and soon where there is cause."""

import numpy as np
import pytest
from tests.chance import allowed
from tests.server.logs import Log, problem

import stagewise as sw
from stagewise.records.reason import ReasonDetails, TripReason
from stagewise.server.controls import build_first_version, build_next_version
from stagewise.server.monitors import FeedbackMonitor
from stagewise.server.state_fold import StateFold


def told(value: float) -> sw.Problem:
    return problem(limits={"opt_out": sw.Limit(value, safe_bound=0.001, model="rates")})


def campaign(*limits: float, then: float) -> StateFold:
    """Return what is known after 400 decisions under each of these limits, with 15 % of opt-outs, by a last version."""
    log, rng, version = Log(), np.random.default_rng(3), build_first_version(told(limits[0]))
    for limit in (*limits, then):
        version = build_next_version(version, told(limit))
        log.add("problem", {"problem": told(limit).to_dict()}, 0)
        for _ in range(400 if limit in limits else 0):
            log.tell(log.decide("nothing", 0), 0, click=0.0, opt_out=float(rng.random() < 0.15))
    folds = [StateFold(version.problem, version.number) for _ in range(3)]
    folds[0].take(log.events)
    folds[1].take(log.events[:500])
    folds[2].restore(folds[1].encode())
    folds[2].take(log.events[500:])
    assert folds[2].encode() == folds[0].encode()
    return folds[0]


def test_decisions_are_held_against_the_limit_they_were_made_under() -> None:
    assert campaign(0.2, then=0.05).circuit_breaker.find_breach() is None  # nobody had promised 5 % of these
    assert campaign(0.05, then=0.2).circuit_breaker.find_breach() is not None
    assert campaign(0.2, 0.05, then=0.3).circuit_breaker.find_breach() is not None


SECOND = 10**6


def folded(log: Log, seconds: float | None = 600.0, at: int = 0) -> StateFold:
    """Return what is known after a log, cut in one way and in another, and from a snapshot in between."""
    told = problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, window="1h", model="rates")})
    folds = [StateFold(told, 1, feedback_timeout=seconds) for _ in range(3)]
    folds[0].take(log.events)
    half = at or len(log.events) // 2
    folds[1].take(log.events[:half])
    folds[2].restore(folds[1].encode())
    for event in log.events[half:]:
        folds[2].take([event])
    assert folds[2].encode() == folds[0].encode()
    return folds[0]


def idle(log: Log, since: int, seconds: int) -> int:
    """Let so much time pass on a server that runs, and to which nobody says anything; return when it is over."""
    for i in range(0, seconds, 30):
        log.add("tick", {}, since + i * SECOND)
    return since + seconds * SECOND


def test_feedback_dries_up_only_after_it_was_silent_for_so_long() -> None:
    log, now = Log(), 10**15
    for i in range(150):
        log.decide("nothing", now + i)
    now = idle(log, now, 500)
    assert folded(log).find_feedback_cause() is None  # an experiment that has just begun
    now = idle(log, now, 300)
    assert folded(log).find_feedback_cause() == ReasonDetails(
        TripReason.FEEDBACK_STOPPED, {"decisions": 150, "seconds": 600.0}
    )
    assert folded(log, None).find_feedback_cause() is None  # nobody asked for it
    log.add("control", {"what": "resume", "actor": "ada", "reason": "so"}, now)
    for _ in range(150):
        log.decide("nothing", now)
    now = idle(log, now, 500)
    assert folded(log).find_feedback_cause() is None  # a person has just revived it
    now = idle(log, now, 300)
    assert folded(log).find_feedback_cause() is not None
    log.tell(299, now, click=0.0)
    assert folded(log).find_feedback_cause() is None


def stopped(before: int, after: int, told: float | None, seed: int = 5) -> ReasonDetails | None:
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
    return folded(log, at=before + 7).find_feedback_cause()


@pytest.mark.parametrize("told", [None, 0.0])
def test_a_feed_of_costs_that_dies_is_noticed_while_others_go_on(told: float | None) -> None:
    """Costs that nobody tells count as none: without this, all would look cheap from then on."""
    why = stopped(2000, 2000, told)
    assert why is not None
    assert why.reason is TripReason.SIGNAL_STOPPED
    assert (why.details["signal"], why.details["action"], why.details["seconds"]) == ("opt_out", "offer", 600.0)
    assert len(why.message) < 400
    assert stopped(2000, 500, told) is None  # what was decided since may still be heard of


def test_what_comes_of_decisions_before_a_revival_is_no_hearing_after_it() -> None:
    log, now = Log(), 10**15
    place = log.decide("offer", now)
    log.add("control", {"what": "resume", "actor": "ada", "reason": "so"}, now + SECOND)
    log.tell(place, now + 2 * SECOND, click=1.0)
    log.decide("offer", now + 3 * SECOND)
    log.tell(place, now + 4 * SECOND, opt_out=1.0)
    idle(log, now + 5 * SECOND, 900)
    fold = folded(log)
    assert fold.find_feedback_cause() is None
    assert fold.feedback_monitor is not None
    assert fold.feedback_monitor.decisions == [0, 0, 1]
    assert fold.feedback_monitor.observed == [[[0, 0]] * 3] * 2


class Shop:
    """A server whose clicks come of one decision in two, two minutes after it."""

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
        told = problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, window="1h", model="rates")})
        fold = StateFold(told, 1, feedback_timeout=600.0)
        for i in range(0, len(self.log.events), 20):
            fold.take(self.log.events[i : i + 20])
            if fold.find_feedback_cause() is not None:
                return False
        return True


@pytest.mark.parametrize(("waiting", "hours"), [(200, 8), (0, 2)], ids=["a night", "a server that was down"])
def test_a_pause_is_no_silence(waiting: int, hours: int) -> None:
    """Nobody could tell a server that was down anything: what is told when it is back counts."""
    shop = Shop()
    shop.open(2000)
    shop.open(waiting, None)
    shop.now += hours * 3600 * SECOND
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


def test_a_feed_that_is_always_slower_than_it_may_be_is_not_watched() -> None:
    log, now, places = Log(), 10**15, []
    for i in range(3000):
        now += SECOND
        places.append(log.decide("offer", now))
        if i >= 900:
            log.tell(places[i - 900], now, click=1.0, opt_out=0.0)
    assert folded(log).find_feedback_cause() is None


def test_silence_by_chance_is_not_taken_for_a_dead_feed() -> None:
    """Feeds of 1 % with lags, looked at after every decision: at most as many alarm as the level says."""
    rng, alarms = np.random.default_rng(11), 0
    for _ in range(200):
        monitor, coming = FeedbackMonitor(1, 1, 0.1, 16e-6), dict[int, int]()  # a slot is a microsecond
        for i, has_signal in enumerate(rng.random(1500) < 0.01):
            monitor.advance(i)
            monitor.record_decision(i, 0)
            if has_signal:
                coming[i + int(rng.integers(30))] = i  # some come too late
            if i in coming:
                monitor.record_signal(coming[i], 0, 0)
            monitor.record_outcome(i + 1)  # of any other signal
            if monitor.find_cause(["click"], ["offer"]) is not None:
                alarms += 1
                break
    assert alarms <= allowed(200, 0.1)


WEEK = {"opt_out": sw.Limit(0.05, safe_bound=0.01, window="7d", model="rates")}
LIMITS = {
    "a week": WEEK,
    "no window": {"opt_out": sw.Limit(0.05, safe_bound=0.01, model="rates")},
    "missing is left out": {"opt_out": sw.Limit(0.05, safe_bound=0.01, window="1h", missing="drop", model="rates")},
    "missing counts": {"opt_out": sw.Limit(0.05, safe_bound=0.01, window="1h", missing=0.04, model="rates")},
    "nothing declared": {"opt_out": sw.Limit(0.05, window="7d", model="rates")},
    "from below": {"stars": sw.Limit(sw.AtLeast(4.5), low=1.0, high=5.0, safe_bound=4.8, window="7d", model="rates")},
    "several": {**WEEK, "complaint": sw.Limit(0.1, safe_bound=0.0, window="2h", by="country")},
}


def busy(name: str, users: int, rate: float, seed: int = 0) -> Log:
    """Return a log in which events are told soon or late, some decisions are deferred or not shown, and people act."""
    log, rng, late = Log(), np.random.default_rng(seed), list[tuple[int, dict[str, float]]]()
    low = "stars" if name == "from below" else "opt_out"
    for user in range(users):
        at, action = user * SECOND * 30, "nothing" if rng.random() < 0.7 else "offer"
        deferred = bool(rng.random() < 0.1)
        asked = {"context": {"age": 40.0, "tenure": 0.0, "country": "NZ"}, "deferred": deferred}
        log.add("decision", {"action": action, "request": asked, "reason": None}, at)
        place = len(log.events)
        if deferred and rng.random() < 0.7:
            late.append((place, {"shown": 1.0}))
        if rng.random() < 0.03:
            log.tell(place, at, shown=0.0)
        if rng.random() < rate:
            late.append((place, {low: 1.0}))
        if rng.random() < 0.03:  # a server refuses that after a signal was told, and a fold takes whatever stands there
            late.append((place, {"shown": 0.0}))
        while late and rng.random() < 0.3:
            where, values = late.pop(int(rng.integers(len(late))))
            log.tell(where, at, **values)
        if user == 2 * users // 3:
            log.add("control", {"what": "resume", "actor": "ada", "reason": "so"}, at)
    return log


@pytest.mark.parametrize("rate", [0.02, 0.4])
@pytest.mark.parametrize("name", LIMITS)
def test_stops_follow_from_the_log_to_the_bit_whatever_is_told_when(name: str, rate: float) -> None:
    log, told = busy(name, 400, rate), problem(reward=sw.Reward("click", window="1h"), limits=LIMITS[name])
    folds = [StateFold(told, 1) for _ in range(3)]
    folds[0].take(log.events)
    for event in log.events:
        folds[1].take([event])
    for start in range(0, len(log.events), 97):
        folds[2].take(log.events[start : start + 97])
        again = StateFold(told, 1)
        again.restore(folds[2].encode())
        folds[2] = again
    assert folds[0].encode() == folds[1].encode() == folds[2].encode()
    assert (
        folds[0].circuit_breaker.find_breach()
        == folds[1].circuit_breaker.find_breach()
        == folds[2].circuit_breaker.find_breach()
    )
    if "missing" not in name:  # where only events are told of, leaving out the rest is a mistake, and stops it too
        assert (folds[0].circuit_breaker.find_breach() is not None) == (rate > 0.1)
        assert bool(folds[0].learned.statistics.open_alerts) == (rate > 0.1 and name != "nothing declared")


def test_what_is_told_stops_a_server_long_before_a_window_closes() -> None:
    log, told, rng = Log(), problem(limits=WEEK), np.random.default_rng(1)
    fold = StateFold(told, 1)
    for user in range(5000):
        place = log.decide("nothing", user)
        if rng.random() < 0.3:
            log.tell(place, user, opt_out=1.0)
        fold.take(log.events[fold.seq :])
        if fold.circuit_breaker.find_breach() is not None:
            break
    assert user < 60
    assert fold.learned.update_count == 0
    why = fold.circuit_breaker.find_breach()
    assert why is not None
    assert (why.reason, why.details["limit"], why.details["at_most"]) == (
        TripReason.OBSERVED_COST_ABOVE_LIMIT,
        "opt_out",
        True,
    )
    assert why.details["level"] == 0.05
    for _ in range(60):
        log.tell(log.decide("nothing", user), user, opt_out=1.0)
    fold.take(log.events[fold.seq :])
    assert fold.learned.statistics.open_alerts["safe cost of opt_out"].details["found"] == "safe_cost_so_far"


def test_single_outcomes_that_never_come_hold_back_no_stop() -> None:
    log, told = (
        Log(),
        problem(reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, model="rates")}),
    )
    log.decide("offer", 0)  # nothing is ever told of it, and learning waits for it
    for user in range(1, 200):
        log.tell(log.decide("offer", user), user, click=0.0, opt_out=float(user % 4 == 0))
    fold = StateFold(told, 1)
    fold.take(log.events)
    assert fold.learned.update_count == 0
    assert fold.circuit_breaker.find_breach() is not None


def test_after_a_revival_only_decisions_made_since_then_count() -> None:
    log, told = Log(), problem(limits=WEEK)
    places = [log.decide("offer", 0) for _ in range(200)]
    for place in places[:40]:
        log.tell(place, 1, opt_out=1.0)
    fold = StateFold(told, 1)
    fold.take(log.events)
    assert fold.circuit_breaker.find_breach() is not None
    log.add("control", {"what": "resume", "actor": "ada", "reason": "a wrong template"}, 2)
    for place in places[40:]:
        log.tell(place, 3, opt_out=1.0)
    fold.take(log.events[fold.seq :])
    assert fold.circuit_breaker.find_breach() is None  # they are of before
    for _ in range(20):
        log.tell(log.decide("offer", 4), 4, opt_out=1.0)
    fold.take(log.events[fold.seq :])
    assert fold.circuit_breaker.find_breach() is not None
