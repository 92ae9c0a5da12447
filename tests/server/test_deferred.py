"""A decision that may never be carried out tells nothing until somebody says that it was."""

import msgspec
from tests.server.logs import DAY, Log, month, problem

from stagewise.agent.observed_costs import LIMIT
from stagewise.agent.outcome_queue import MISSING
from stagewise.server.event_log import Event
from stagewise.server.log_statistics import LogStatistics
from stagewise.server.state_fold import StateFold


def deferred(log: Log, at: int) -> int:
    """Add a deferred decision; return its place."""
    place = log.decide("digest", at)
    body = log.events[-1].body.replace(b'"request":{', b'"request":{"deferred":true,')
    log.events[-1] = log.events[-1]._replace(body=body)
    return place


def folded(log: Log, *, at_once: bool = True) -> StateFold:
    """Return what is known after a log."""
    fold = StateFold(problem(), 1)
    for events in [log.events] if at_once else [[event] for event in log.events]:
        fold.take(events)
    return fold


def tallied(log: Log) -> LogStatistics:
    """Return what the page counts of a log."""
    tally = LogStatistics("messages")
    tally.take(Event(0, 0, "problem", "1", -1, msgspec.json.encode({"problem": problem().to_dict()})))
    for event in log.events:
        tally.take(event)
    return tally


def test_what_was_never_activated_is_not_learned_from_even_when_its_windows_close() -> None:
    log = Log()
    place = deferred(log, 0)
    log.tell(place, 1, click=1.0, opt_out=0.0)
    log.add("tick", {}, 30 * DAY)
    fold = folded(log)
    assert fold.learned.update_count == 0
    waiting = [len(fold.queue.find(k, MISSING)) for k in range(3)]
    assert waiting == [0, 0, 0]  # of clicks neither, which have no window: the longest one decides


def test_what_was_never_activated_holds_back_nothing_for_ever() -> None:
    log = Log()
    deferred(log, 0)
    second = log.decide("offer", 1)
    log.tell(second, 2, click=1.0, opt_out=0.0)
    assert folded(log).learned.update_count == 0
    log.add("tick", {}, 30 * DAY)
    fold = folded(log)
    assert fold.learned.update_count == 3  # the second one's, with the complaint that never came
    assert fold.encode() == folded(log, at_once=False).encode()


def test_what_is_activated_is_learned_from_whenever_its_outcomes_came() -> None:
    log = Log()
    place = deferred(log, 0)
    log.tell(place, 1, click=1.0, opt_out=0.0)
    assert folded(log).learned.update_count == 0
    log.tell(place, 2, shown=1.0)
    assert folded(log).learned.update_count == 2
    log.add("tick", {}, 30 * DAY)
    fold = folded(log)
    assert fold.learned.update_count == 3  # the complaint that never came counts as declared
    plain = Log()
    place = plain.decide("digest", 0)
    plain.tell(place, 1, click=1.0, opt_out=0.0)
    plain.add("tick", {}, 30 * DAY)
    assert folded(plain).learned.state.memory.tobytes() == fold.learned.state.memory.tobytes()


def test_what_is_deferred_holds_back_what_follows_until_it_is_settled() -> None:
    log = Log()
    first, second = deferred(log, 0), log.decide("offer", 1)
    log.tell(second, 2, opt_out=0.0)
    assert folded(log).learned.update_count == 0
    log.tell(first, 3, shown=0.0)
    assert folded(log).learned.update_count == 1


def test_a_snapshot_remembers_what_is_deferred() -> None:
    log = Log()
    place = deferred(log, 0)
    log.tell(place, 1, click=1.0)
    half = StateFold(problem(), 1)
    half.restore(folded(log).encode())
    log.tell(place, 2, shown=1.0)
    half.take(log.events[2:])
    assert half.encode() == folded(log).encode() == folded(log, at_once=False).encode()
    assert half.learned.update_count == 1


def test_the_page_counts_what_the_learner_learns() -> None:
    log = Log()
    first, second = deferred(log, 0), log.decide("offer", 1)
    log.tell(second, 2, click=1.0, opt_out=0.0)
    log.add("tick", {}, 30 * DAY)
    log.tell(first, 30 * DAY + 1, shown=1.0)  # too late: it was given up when its windows had closed
    fold, tally = folded(log), tallied(log)
    assert sum(seen.count for seen in tally.observed_mean.values()) == fold.learned.update_count == 3
    assert (tally.queue.heads, tally.queue.late) == (
        fold.queue.heads,
        fold.queue.late,
    )
    long = month(300)
    fold, tally = folded(long), tallied(long)
    assert sum(seen.count for seen in tally.observed_mean.values()) == fold.learned.update_count > 500
    tallied_costs = tally.since_limit_change["opt_out"]
    count, mean = fold.circuit_breaker.summarize(LIMIT, 0)
    assert (tallied_costs.count, tallied_costs.total / tallied_costs.count) == (count, mean)


def test_what_was_given_up_counts_for_the_tests_of_costs_as_what_was_not_shown() -> None:
    stops = []
    for is_told in (False, True):
        log, fold = Log(), StateFold(problem(), 1)
        places = [deferred(log, at) for at in range(200)]
        for user in range(40):
            log.tell(log.decide("offer", 300), 300, opt_out=float(user % 13 == 12))
        for place in places if is_told else ():
            log.tell(place, 400, shown=0.0)
        log.add("tick", {}, 30 * DAY)
        fold.take(log.events)
        log.events, first = [], len(log.events)
        for _ in range(20):
            log.events = []
            log.add(
                "decision",
                {"action": "offer", "request": {"context": {"age": 1, "tenure": 0, "country": "NZ"}}},
                31 * DAY,
            )
            event = log.events[0]._replace(seq=first + 1, number=first + 1, key=str(first + 1))
            first += 2
            told = {"decision_id": event.key, "values": {"opt_out": 1.0}}
            log.add("outcome", told, 31 * DAY, event.number)
            fold.take([event, log.events[1]._replace(seq=first, number=first, key=str(first))])
            stops.append(fold.circuit_breaker.find_breach())
    assert stops[:20] == stops[20:]
    assert stops[0] is None
    assert stops[-1] is not None
