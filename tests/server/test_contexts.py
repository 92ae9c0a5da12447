"""A context as data comes, through a server: JSON types, replay, export, snapshots and counts."""

import json
from datetime import date
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

import stagewise as sw
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.server.audit.export import build_columns
from stagewise.server.client import DecisionRequest as ClientRequest
from stagewise.server.client import build_request, encode_json
from stagewise.server.controls import Controls, build_first_version, build_next_version
from stagewise.server.decide import DecisionRecord, PolicySnapshot, decide
from stagewise.server.event_log import DECISION, OUTCOME, Event, encode_canonical
from stagewise.server.messages import DecisionRequest
from stagewise.server.state_fold import StateFold

LIVE = Controls(mode="live")
PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={
        "age": (18, 99),
        "tenure": sw.Number(0, 3650, clip=True, missing=0),
        "plan": sw.Category(["free", "basic", "pro"], other=True, missing="other"),
        "is_new": sw.Boolean(),
        "joined": sw.Date("2024-01-01", "2026-12-31", clip=True),
    },
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, safe_bound=0.0, by=["plan", "is_new"])},
)
USER: dict[str, Any] = {"age": 34, "tenure": 4000, "plan": "pro", "is_new": True, "joined": "2025-03-01T12:00:00Z"}
SENT: list[dict[str, Any]] = [
    USER,
    USER | {"tenure": "", "plan": None},
    {"age": 34, "is_new": False, "joined": 1.74e9},
    USER | {"plan": "g" * 300, "is_new": 1},
    USER | {"joined": "2031-01-01", "tenure": -3},
]


def ask(snapshot: PolicySnapshot, contexts: list[Any]) -> list[Any]:
    requests = msgspec.convert([{"context": one} for one in json.loads(json.dumps(contexts))], list[DecisionRequest])
    asked = [(f"u-{i}", request) for i, request in enumerate(requests)]
    return decide(snapshot, LIVE, LIVE, b"k" * 32, asked)


def fold_of(contexts: list[Any]) -> StateFold:
    """Return the fold of a log with a decision and an outcome of each context."""
    fold, events = StateFold(PROBLEM, 1, frozenset()), list[Event]()
    for i, record in enumerate(ask(fold.build_snapshot(), contexts)):
        outcome = {"decision_id": f"u-{i}", "values": {"click": 1.0, "opt_out": 0.1}}
        row = 2 * i + 1
        events.append(Event(row, i, DECISION, f"u-{i}", -1, encode_canonical(record), seq=row))
        events.append(Event(row + 1, i, OUTCOME, str(i), row, encode_canonical(outcome), seq=row + 1))
    fold.take(events)
    return fold


def test_a_row_that_is_refused_has_its_code_and_the_others_are_decided() -> None:
    wrong = {
        ErrorCode.CONTEXT_OUT_OF_RANGE: USER | {"age": 340},
        ErrorCode.MISSING_CONTEXT_FIELD: USER | {"is_new": None},
        ErrorCode.WRONG_TYPE: USER | {"is_new": "true"},
        ErrorCode.INVALID_TIME: USER | {"joined": "soon"},
        ErrorCode.UNKNOWN_CONTEXT_FIELD: USER | {"plam": "pro"},
    }
    answers = ask(fold_of([]).build_snapshot(), [*SENT, *wrong.values()])
    assert all(isinstance(one, DecisionRecord) for one in answers[: len(SENT)])
    errors = answers[len(SENT) :]
    assert all(isinstance(one, InvalidActions) for one in errors)
    assert [one.code for one in errors] == list(wrong)


def test_a_log_replays_to_what_an_agent_learns() -> None:
    fold, agent = fold_of(SENT), sw.Agent(PROBLEM, seed=1)
    snapshot = fold.build_snapshot()
    agent.learn_log_frame(
        {name: [one.get(name) for one in SENT] for name in PROBLEM.context}
        | {"action": ["nothing"] * 5, "click": [1.0] * 5, "opt_out": [0.1] * 5}
    )
    totals = [policy.compute_totals(state).pulls for policy, state in (
        (snapshot.policy, snapshot.learned.state), (agent.policy, agent.state)
    )]  # fmt: skip
    assert totals[0].sum() == totals[1].sum() == 2 * len(SENT)
    assert snapshot.learned.statistics.clipped == {"tenure": 3, "joined": 1} == agent.report().clipped
    other = StateFold(PROBLEM, 1, frozenset())
    other.restore(fold.encode())
    assert other.learned.statistics.clipped == snapshot.learned.statistics.clipped
    assert ask(other.build_snapshot(), SENT) == ask(snapshot, SENT)


def test_an_export_has_one_type_for_every_column() -> None:
    columns = {name: (kind, get) for name, kind, get in build_columns(PROBLEM)}
    records: Any = [SimpleNamespace(record=SimpleNamespace(request={"context": one})) for one in SENT]
    found = {name: [columns[name][1](one) for one in records] for name in PROBLEM.context}
    assert found["tenure"] == [4000.0, None, None, 4000.0, -3.0]
    assert found["is_new"] == [True, True, False, True, True]
    assert found["plan"] == ["pro", None, None, "g" * 300, "pro"]
    assert {name: columns[name][0] for name in PROBLEM.context} == {
        "age": float, "tenure": float, "plan": str, "is_new": bool, "joined": str,
    }  # fmt: skip
    read = sw.Agent(PROBLEM, seed=1)
    assert read.learn_log_frame(found | {"action": ["offer"] * 5, "click": [0] * 5, "opt_out": [0] * 5}) == {}
    assert read.report().clipped == {"tenure": 3, "joined": 1}


def test_a_client_sends_what_python_has() -> None:
    given = {
        "age": np.float32(34), "tenure": np.float64("nan"), "plan": None, "is_new": np.True_,
        "joined": date(2025, 3, 1), "at": np.datetime64("2025-03-01T12:00:00"),
    }  # fmt: skip
    sent = json.loads(encode_json(build_request(ClientRequest(given))))["context"]
    assert sent == {
        "age": 34.0, "tenure": None, "plan": None, "is_new": True, "joined": "2025-03-01", "at": "2025-03-01T12:00:00",
    }  # fmt: skip
    del sent["at"]
    assert isinstance(ask(fold_of([]).build_snapshot(), [sent])[0], DecisionRecord)


@pytest.mark.parametrize(
    "plan", [sw.Category(["free", "basic", "pro"], missing="free"), sw.Category(["basic", "free", "pro"], other=True)]
)
def test_a_version_cannot_declare_another_context(plan: sw.Category) -> None:
    changed = sw.Problem.from_dict(PROBLEM.to_dict() | {"context": {**PROBLEM.to_dict()["context"], "plan": plan}})
    with pytest.raises(sw.InvalidProblem) as caught:
        build_next_version(build_first_version(PROBLEM), changed)
    assert caught.value.code is ErrorCode.CHANGE_NOT_ALLOWED
    again = json.loads(json.dumps(PROBLEM.to_dict()))
    assert build_next_version(build_first_version(PROBLEM), sw.Problem.from_dict(again)).number == 2
