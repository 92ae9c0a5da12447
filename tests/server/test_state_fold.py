"""The learner's state is a fold of the log: the same however it is cut, and the same as an agent's."""

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.server.logs import DAY, Log, month, problem

import stagewise as sw
import stagewise.problem.context as naming
from stagewise.agent.health import check_health
from stagewise.agent.identity import derive_id_prefix
from stagewise.agent.outcome_queue import INITIAL_CAPACITY, MISSING
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.reason import ReasonDetails
from stagewise.server.decide import decode_decision
from stagewise.server.event_log import Event
from stagewise.server.snapshots import decode_snapshot, encode_snapshot
from stagewise.server.state_fold import StateFold


def folded(log: Log, sizes: tuple[int, ...], told: sw.Problem | None = None) -> StateFold:
    fold, done, turn = StateFold(problem() if told is None else told, 1), 0, 0
    while done < len(log.events):
        fold.take(log.events[done : done + sizes[turn % len(sizes)]])
        done, turn = done + sizes[turn % len(sizes)], turn + 1
    return fold


def test_a_fold_does_not_depend_on_how_the_log_is_cut() -> None:
    log = month(300)
    whole = folded(log, (10_000,))
    assert whole.learned.update_count > 500
    assert folded(log, (1,)).encode() == whole.encode()
    assert folded(log, (7, 3, 150)).encode() == whole.encode()


def test_tests_that_begin_anew_after_a_change_do_not_depend_on_how_the_log_is_cut() -> None:
    jumps = problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, model="rates", drift="jumps")})
    log, rng = Log(), np.random.default_rng(0)
    for i in range(400):
        place, opt_out = log.decide("offer", i * DAY), float(rng.random() < (0.01 if i < 200 else 0.4))
        log.tell(place, i * DAY + 1, click=0.0, opt_out=opt_out)
    whole = folded(log, (10_000,), jumps)
    assert "change of opt_out" in whole.learned.statistics.warnings
    assert 200 < whole.circuit_breaker.tests["limit", 0].first < 400
    assert folded(log, (1,), jumps).encode() == whole.encode()
    assert folded(log, (37, 5), jumps).encode() == whole.encode()


def test_what_deciders_are_told_does_not_depend_on_how_the_log_is_cut() -> None:
    log, told = Log(), StateFold(problem(), 1)
    for i in range(40):
        log.tell(log.decide("offer", i), i, click=0.0, opt_out=0.0, complaint=0.0)
    for event in log.events:
        told.take([event])
        told.build_snapshot()  # as a learner publishes it
    assert encode_snapshot(told.build_snapshot()) == encode_snapshot(folded(log, (10_000,)).build_snapshot())


def test_a_fold_goes_on_from_a_snapshot_to_the_bit() -> None:
    log = month(300)
    half = StateFold(problem(), 1)
    half.take(log.events[:250])
    again = StateFold(problem(), 1)
    again.restore(half.encode())
    again.take(log.events[250:])
    assert again.encode() == folded(log, (10_000,)).encode()


@pytest.mark.parametrize("row", [1200, 1600], ids=["before any outcome", "after the first outcomes"])
def test_a_fold_of_another_process_names_the_segment_of_a_drift(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    places = [log.decide("offer", i, country="NZ" if i % 2 else "AU") for i in range(1200)]
    for i, place in enumerate(places):
        log.tell(place, 1200 + i, click=0.0, opt_out=0.0, complaint=float(i >= 600 and i % 2 == 0))
    whole, half, again = folded(log, (10_000,)), StateFold(problem(), 1), StateFold(problem(), 1)
    half.take(log.events[:row])
    state = half.encode()
    assert not half.learned.statistics.open_alerts
    monkeypatch.setattr(naming, "SEGMENTS", {})  # another process
    naming.hash_segment.cache_clear()
    again.restore(state)
    again.take(log.events[row:])
    assert again.learned.statistics.open_alerts["drift of complaint"].details["segment"] == "AU"
    assert again.encode() == whole.encode()


def test_a_fold_learns_what_an_agent_learns_that_is_told_the_same() -> None:
    log = month(300)
    shown = [
        event for event in log.events if b"shown" not in event.body
    ]  # agents know no decisions that were not shown
    log.events = [event._replace(seq=i + 1) for i, event in enumerate(shown)]
    fold = folded(log, (64,))
    agent = sw.Agent(problem(), seed=1)
    indices = index_decisions(log.events)
    for event in log.events:
        tell(agent, event, indices)
    assert agent.state.memory.tobytes() == fold.learned.state.memory.tobytes()


ROWS = StateFold(problem(), 1)


def index_decisions(events: list[Event]) -> dict[int, int]:
    """Return the place of each decision among decisions, by number."""
    return {number: i for i, number in enumerate(event.number for event in events if event.kind == "decision")}


def tell(agent: sw.Agent, event: Event, indices: dict[int, int]) -> None:
    """Give an agent a row of the log."""
    nothing = np.empty(0)
    if event.kind == "decision":
        row = ROWS.build_action_rows([decode_decision(event.body)])[0]
        made = Decision(row, int(row[0]), 1.0, None, 0.0, nothing, nothing, None, indices[event.number])
        agent.register_decision(made._with_mark(derive_id_prefix(agent.seed, "", "server")), now=event.at / 1e6)
    elif event.kind == "outcome":
        with suppress(sw.InvalidOutcome):  # it came after its window
            agent.learn(indices[event.decision], now=event.at / 1e6, **msgspec.json.decode(event.body)["values"])
    else:
        agent.expire_pending(event.at / 1e6)


@pytest.mark.long
def test_an_agent_and_a_fold_that_learn_the_same_find_a_drift_after_the_same_row() -> None:
    log = moving()
    whole = folded(log, (10_000,))
    assert folded(log, (1,)).encode() == whole.encode()
    fold, agent, found = StateFold(problem(), 1), sw.Agent(problem(), seed=1), []
    indices = index_decisions(log.events)
    for event in log.events:
        fold.take([event])
        tell(agent, event, indices)
        doubts = {
            name: words for name, words in agent._learned.statistics.open_alerts.items() if name != "limit of opt_out"
        }
        assert (
            doubts == fold.learned.statistics.open_alerts
        )  # beyond its limit a server stops itself (trips), and doubts nothing
        found.append("drift of opt_out" in fold.learned.statistics.open_alerts)
    assert 1200 < found.index(True) < len(found)
    assert fold.build_snapshot().learned.statistics.open_alerts == fold.learned.statistics.open_alerts
    assert (
        agent.health()["drift of opt_out"]
        == check_health(fold.policy, fold.learned.state, fold.learned.statistics)["drift of opt_out"]
    )
    assert fold.learned.statistics.tracks["opt_out"].to_dict() == whole.learned.statistics.tracks["opt_out"].to_dict()


def test_what_is_missing_counts_as_declared_when_its_window_closes() -> None:
    log = Log()
    place = log.decide("offer", 0)
    log.tell(place, 1, click=1.0)
    fold = folded(log, (10,))
    assert fold.learned.update_count == 1
    assert [len(fold.queue.find(k, MISSING)) for k in range(3)] == [0, 1, 1]
    log.add("tick", {}, 7 * DAY)
    fold.take(log.events[2:])
    assert fold.learned.update_count == 3
    log.tell(place, 7 * DAY + 1, opt_out=1.0)
    fold.take(log.events[3:])
    assert fold.learned.update_count == 3
    assert fold.queue.late == [0, 1, 0]


@pytest.mark.long
def test_an_outcome_that_comes_long_after_its_decision_is_counted_and_learning_goes_on() -> None:
    """The tables of the queue have left out the decision, and more decisions than they hold rows."""
    log = Log()
    first = log.decide("offer", 0)
    log.tell(first, 1, click=1.0)
    for at in range(DAY, 1050 * DAY, DAY // 2):
        log.tell(log.decide("nothing", at), at, click=0.0, opt_out=0.0, complaint=0.0)
    fold, end = folded(log, (100,)), 1051 * DAY
    assert fold.queue.base > INITIAL_CAPACITY == len(fold.queue.dates)
    before = fold.learned.update_count
    log.tell(first, end, click=1.0, opt_out=1.0)
    log.tell(first, end, shown=0.0, complaint=1.0)
    log.tell(log.decide("offer", end), end, click=1.0, opt_out=0.0, complaint=0.0)
    fold.take(log.events[-4:])
    assert fold.queue.late == [1, 1, 1]
    assert fold.learned.update_count == before + 3


def test_a_decision_that_was_not_shown_is_not_learned_from_and_holds_nothing_back() -> None:
    log = Log()
    first, second = log.decide("offer", 0), log.decide("digest", 1)
    log.tell(second, 2, click=1.0)
    log.tell(first, 3, shown=0.0)
    fold = folded(log, (1,))
    assert fold.learned.update_count == 1
    assert fold.queue.heads == [2, 1, 1]


def test_rows_that_are_missing_are_refused() -> None:
    log = month(20)
    with refused(InvalidProblem, ErrorCode.STORE_CORRUPT):
        StateFold(problem(), 1).take([*log.events[:5], *log.events[6:]])


def tripped(fold: StateFold) -> ReasonDetails:
    """Return why the server should stop."""
    found = fold.circuit_breaker.find_breach()
    assert found is not None
    return found


def trip(fold: StateFold) -> dict[str, Any]:
    """Return the same as a control holds it."""
    return {"trip": tripped(fold).reason, "details": tripped(fold).details}


def test_costs_far_above_a_limit_trip_the_server() -> None:
    log = Log()
    for user in range(200):
        log.tell(log.decide("offer", user), user, click=0.0, opt_out=float(user % 2), complaint=0.0)
    fold = folded(log, (50,))
    assert tripped(fold).details["limit"] == "opt_out"
    assert tripped(fold).details["mean"] >= 0.5


def test_a_trip_in_the_log_is_known_by_its_reason() -> None:
    log = Log()
    for user in range(200):
        log.tell(log.decide("offer", user), user, click=0.0, opt_out=float(user % 2), complaint=0.0)
    fold = folded(log, (50,))
    assert not fold.circuit_breaker.is_logged(tripped(fold))
    log.add("control", {"what": "trip", "actor": "the server", **trip(fold)}, 201)
    fold.take(log.events[-1:])
    assert fold.circuit_breaker.is_logged(tripped(fold))


def moving() -> Log:
    """Return the log of 1,100 users, of whom every third opts out from the 600th on."""
    log = Log()
    for user in range(1100):
        left = float(user > 600 and user % 3 == 0)
        log.tell(log.decide("offer", user), user, click=0.0, opt_out=left, complaint=0.0)
    return log


def test_a_mean_that_moved_is_in_doubt() -> None:
    fold = folded(moving(), (200,))
    assert fold.learned.statistics.open_alerts["drift of opt_out"].details["found"] == "drift"


def test_a_contradicted_declaration_stays_in_doubt_until_a_person_acknowledges_it() -> None:
    log = Log()
    for user in range(600):  # the safe action is declared to cost .001, and costs .04
        log.tell(log.decide("nothing", user), user, click=0.0, opt_out=float(user % 25 == 0), complaint=0.0)
    fold = folded(log, (50,))
    assert list(fold.learned.statistics.open_alerts) == ["safe cost of opt_out"]
    known = decode_snapshot(problem(), 1, frozenset(), encode_snapshot(fold.build_snapshot()))
    assert known.learned.statistics.open_alerts == fold.learned.statistics.open_alerts
    log.add("control", {"what": "acknowledge", "name": "safe cost of opt_out", "actor": "ada", "reason": "known"}, 700)
    fold.take(log.events[-1:])
    assert fold.learned.statistics.open_alerts == {}


def test_rows_that_are_learned_are_those_that_were_decided_on() -> None:
    told, rng = problem(), np.random.default_rng(3)
    policy, fold = told.policy(), StateFold(told, 1)
    for _ in range(200):
        context = {"age": float(rng.uniform(0, 100)), "tenure": float(rng.uniform(-1, 1)), "country": "NZ"}
        decision = policy.decide(policy.start(), context)
        asked = {"action": decision.action, "request": {"context": context}}
        row = fold.build_action_rows([decode_decision(msgspec.json.encode(asked))])[0]
        assert row.tobytes() == decision[0].tobytes()
