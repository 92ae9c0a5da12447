"""Many decisions in one call are the same as one by one, to the bit."""

import hmac

import numpy as np
import pytest
from tests.server.logs import DAY, Log, problem

from stagewise.policies.problem import Problem
from stagewise.records.random_key import RandomKey
from stagewise.server.controls import Controls
from stagewise.server.decision_engine import PolicySnapshot, compute_draw, encode_body, make_decision, make_decisions
from stagewise.server.event_log import encode_canonical
from stagewise.server.messages import DecisionRequest
from stagewise.server.state_fold import StateFold

KEY = b"k" * 32
LIVE, NOWHERE = Controls(mode="live", row=3), Controls()


def after(told: Problem, decisions: int, retired: frozenset[str] = frozenset()) -> PolicySnapshot:
    """Return what is known after some users."""
    log, rng = Log(), np.random.default_rng(1)
    for i in range(decisions):
        place = log.decide(("nothing", "digest", "offer")[i % 3], i * 1000)
        log.tell(place, i * 1000 + 1, click=float(rng.random() < 0.3), opt_out=float(rng.random() < 0.001))
    log.add("tick", {}, 30 * DAY)
    fold = StateFold(told, 1, retired)
    fold.take(log.events)
    return fold.build_snapshot()


def users(count: int) -> list[tuple[str, DecisionRequest]]:
    """Return what users ask."""
    rng = np.random.default_rng(2)
    told = [
        {"age": int(rng.integers(0, 101)), "tenure": float(rng.random()), "country": f"c{i % 3}"} for i in range(count)
    ]
    return [(f"u-{i}", DecisionRequest(context, deferred=i % 7 == 0)) for i, context in enumerate(told)]


@pytest.mark.parametrize("decisions", [0, 400])
@pytest.mark.parametrize("retired", [frozenset[str](), frozenset({"digest"})])
def test_many_are_as_one_by_one(decisions: int, retired: frozenset[str]) -> None:
    known, asked = after(problem(), decisions, retired), users(40)
    many = make_decisions(known, LIVE, NOWHERE, KEY, asked)
    one_by_one = [make_decision(known, LIVE, NOWHERE, KEY, id_, one) for id_, one in asked]
    assert [encode_body(body) for body in many] == [encode_canonical(body) for body in one_by_one]


def test_what_is_not_plain_is_left_to_be_asked_for_by_itself() -> None:
    known = after(problem(), 0)
    plain = {"age": 34, "tenure": 0.5, "country": "se"}
    asked = [
        ("only", DecisionRequest(plain, only=["digest"])),
        ("missing", DecisionRequest({})),
        ("unknown", DecisionRequest({**plain, "x": 1.0})),
        ("other number", DecisionRequest({"age": 34, "x": 0.5, "country": "se"})),
        ("other segment", DecisionRequest({"age": 34, "tenure": 0.5, "x": "se"})),
        ("outside", DecisionRequest({**plain, "age": 1e9})),
        ("truth", DecisionRequest({**plain, "age": True})),
        ("text", DecisionRequest({**plain, "age": "34"})),
        ("plain", DecisionRequest(plain)),
    ]
    made = make_decisions(known, LIVE, NOWHERE, KEY, asked)
    assert [id_ for (id_, _), body in zip(asked, made, strict=True) if body is not None] == ["plain"]


@pytest.mark.parametrize(
    ("controls", "everywhere"),
    [
        (LIVE._replace(mode="shadow"), NOWHERE),
        (LIVE._replace(mode="canary", share=0.5), NOWHERE),
        (LIVE._replace(mode="off"), NOWHERE),
        (LIVE._replace(killed="killed"), NOWHERE),
        (LIVE, NOWHERE._replace(killed="killed")),
    ],
)
def test_only_what_is_live_is_decided_together(controls: Controls, everywhere: Controls) -> None:
    assert make_decisions(after(problem(), 0), controls, everywhere, KEY, users(3)) == [None] * 3


def test_what_is_not_read_or_in_doubt_is_not_decided_together() -> None:
    known = after(problem(), 0)
    assert make_decisions(known._replace(read=False), LIVE, NOWHERE, KEY, users(3)) == [None] * 3
    known.statistics.alerts["model"] = "it is wrong"
    assert make_decisions(known, LIVE, NOWHERE, KEY, users(3)) == [None] * 3


def test_draws_are_by_hmac() -> None:
    for key in (b"", b"a", b"k" * 32, b"k" * 64, b"k" * 65, b"k" * 200):
        told = hmac.digest(key, "ü-1".encode(), "sha256")
        seed, run = int.from_bytes(told[:8]) >> 1, 1 + int.from_bytes(told[8:12]) % (2**32 - 1)
        assert compute_draw(key, "ü-1") == RandomKey(seed, run, int.from_bytes(told[12:16]))


def test_a_user_without_a_segment_leaves_the_others_alone() -> None:
    """He is refused by himself; those who came with him are decided together as if he were not there."""
    known, asked = after(problem(), 40), users(3)
    bad = [("u-x", DecisionRequest({"age": 30, "tenure": 0.5, "country": country})) for country in (1.5, None)]
    made = make_decisions(known, LIVE, NOWHERE, KEY, [asked[0], bad[0], asked[1], bad[1], asked[2]])
    assert (made[1], made[3]) == (None, None)
    assert [made[0], made[2], made[4]] == make_decisions(known, LIVE, NOWHERE, KEY, asked)
