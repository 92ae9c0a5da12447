"""Many decisions in one call are the same as one by one, to the bit."""

import hmac

import numpy as np
import pytest
from tests.server.logs import DAY, Log, problem

from stagewise.policies.problem import Problem
from stagewise.problem.context import ContextVector
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server import decide as decide_module
from stagewise.server.controls import Controls
from stagewise.server.decide import DecisionRecord, PolicySnapshot, compute_draw, decide
from stagewise.server.messages import DecisionRequest
from stagewise.server.state_fold import StateFold

KEY = b"k" * 32
LIVE, NOWHERE = Controls(mode="live", row=3), Controls()
KILLED = ReasonDetails.of(FallbackReason.KILLED, actor="ada", note="x")
PLAIN = {"age": 34, "tenure": 0.5, "country": "se"}


def after(
    told: Problem, decisions: int, retired: frozenset[str] = frozenset(), opt_out: float = 0.001
) -> PolicySnapshot:
    """Return what is known after some users."""
    log, rng = Log(), np.random.default_rng(1)
    for i in range(decisions):
        place = log.decide(("nothing", "digest", "offer")[i % 3], i * 1000)
        log.tell(place, i * 1000 + 1, click=float(rng.random() < 0.3), opt_out=float(rng.random() < opt_out))
    log.add("tick", {}, 30 * DAY)
    fold = StateFold(told, 1, retired)
    fold.take(log.events)
    return fold.build_snapshot()


def users(count: int) -> list[tuple[str, DecisionRequest]]:
    """Return what users ask, some of it not to be answered."""
    rng, asked = np.random.default_rng(2), list[tuple[str, DecisionRequest]]()
    for i in range(count):
        context = {"age": int(rng.integers(0, 101)), "tenure": float(rng.random()), "country": f"c{i % 3}"}
        context |= {5: {"age": True}, 6: {"age": 1e9}, 8: {"country": 1.5}}.get(i % 10, {})
        asked.append((f"u-{i}", DecisionRequest(context, ["offer"] if i % 4 == 0 else None, deferred=i % 7 == 0)))
    return asked


@pytest.mark.parametrize("retired", [frozenset[str](), frozenset({"digest"})], ids=["all", "retired"])
@pytest.mark.parametrize(
    ("controls", "everywhere", "reasons"),
    [
        (LIVE, NOWHERE, set()),
        (LIVE._replace(mode="shadow"), NOWHERE, {"shadow"}),
        (LIVE._replace(mode="canary", share=0.5), NOWHERE, {"outside_canary"}),
        (LIVE._replace(mode="off"), NOWHERE, {"experiment_off"}),
        (LIVE._replace(killed=KILLED), NOWHERE, {"killed"}),
        (LIVE, NOWHERE._replace(killed=KILLED), {"killed"}),
    ],
)
@pytest.mark.parametrize("known", ["nothing", "much", "contradiction", "alert", "not read"])
def test_many_are_as_one_by_one(
    known: str, controls: Controls, everywhere: Controls, reasons: set[str], retired: frozenset[str]
) -> None:
    snapshot = after(problem(), 0 if known == "nothing" else 300, retired, 0.3 if known == "contradiction" else 0.001)
    if known == "alert":
        snapshot.learned.statistics.alerts["model"] = ReasonDetails(FallbackReason.ASSUMPTION_CONTRADICTED)
    if known == "not read":
        snapshot = snapshot._replace(read=False)
    asked = users(40)
    together = decide(snapshot, controls, everywhere, KEY, asked)
    for one, answer in zip(asked, together, strict=True):
        (alone,) = decide(snapshot, controls, everywhere, KEY, [one])
        if isinstance(alone, DecisionRecord):
            assert alone == answer
        else:
            assert isinstance(answer, InvalidActions)
            assert (str(answer), alone.code) == (str(alone), ErrorCode(answer.code))
    made = [one for one in together if isinstance(one, DecisionRecord)]
    assert 28 <= len(made) <= 32, "the others are refused"
    found = {one.reason for one in made}
    assert found >= reasons
    if known in ("contradiction", "alert") and not reasons:
        assert found == {"assumption_contradicted"}
    if "shadow" in reasons:
        assert all(one.policy_choice for one in made)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (DecisionRequest({}), ErrorCode.MISSING_CONTEXT_FIELD),
        (DecisionRequest({**PLAIN, "x": 1.0}), ErrorCode.UNKNOWN_CONTEXT_FIELD),
        (DecisionRequest({**PLAIN, "age": 1e9}), ErrorCode.CONTEXT_OUT_OF_RANGE),
        (DecisionRequest({**PLAIN, "age": "34"}), ErrorCode.WRONG_TYPE),
        (DecisionRequest(PLAIN, ["digest"]), ErrorCode.ACTION_RETIRED),
        (DecisionRequest(PLAIN, ["nobody"]), ErrorCode.UNKNOWN_ACTION),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_the_others_alone(request_: DecisionRequest, code: ErrorCode) -> None:
    known, good = after(problem(), 0, frozenset({"digest"})), [(f"g-{i}", DecisionRequest(PLAIN)) for i in range(2)]
    first, error, last = decide(known, LIVE, NOWHERE, KEY, [good[0], ("bad", request_), good[1]])
    assert isinstance(error, InvalidActions)
    assert error.code == code
    assert [first, last] == decide(known, LIVE, NOWHERE, KEY, good)


def test_a_bug_in_reading_one_request_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = after(problem(), 100), [(f"g-{i}", DecisionRequest({**PLAIN, "age": 30 + i})) for i in range(3)]
    expected, read = decide(known, LIVE, NOWHERE, KEY, asked), decide_module.encode_context

    def fails(snapshot: PolicySnapshot, request: DecisionRequest, at: int) -> ContextVector:
        return read(snapshot, request, at // (request.context["age"] - 31))

    monkeypatch.setattr(decide_module, "encode_context", fails)
    first, failed, last = decide(known, LIVE, NOWHERE, KEY, asked)
    assert [first, last] == [expected[0], expected[2]]
    assert isinstance(failed, DecisionRecord)
    assert (failed.action, failed.reason) == ("nothing", FallbackReason.DECISION_FAILED)
    assert failed.control == (3, 0)
    assert failed.request["context"]["age"] == 31


def test_draws_are_by_hmac() -> None:
    for key in (b"", b"a", b"k" * 32, b"k" * 65):
        told = hmac.digest(key, "ü-1".encode(), "sha256")
        seed, run = int.from_bytes(told[:8]) >> 1, 1 + int.from_bytes(told[8:12]) % (2**32 - 1)
        assert compute_draw(key, "ü-1") == RandomKey(seed, run, int.from_bytes(told[12:16]))
