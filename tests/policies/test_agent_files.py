"""Saved agents: whole, refused in a helpful sentence, or the old file as it was."""

import dataclasses
import json
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    Agent,
    AlwaysSafe,
    ArmSet,
    AtLeast,
    InvalidFile,
    InvalidProblem,
    LinUCB,
    SafeAction,
    TimesSafe,
)
from stagewise.agent import storage
from stagewise.problem.errors import ErrorCode

LINEAR = LCLUCB(safe_action=SafeAction(features=[0.3, 0.4], reward=0.1, cost=0.1), threshold=0.5, noise=0.1)
PULLS = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.1), threshold=0.5)
FREE = LinUCB(noise=0.1)
NAMED = LCLUCB(
    safe_action=SafeAction(features=[0.3, 0.4], cost={"a": 0.1, "b": 0.2}), threshold={"a": 0.5, "b": 0.4}, noise=0.1
)


def written(folder: Path, policy: Any = LINEAR) -> Path:
    """Return the file of an agent that has learned something and waits for two outcomes."""
    agent = Agent(policy, seed=9)
    actions = ArmSet(3) if policy is PULLS else np.eye(2)
    for _ in range(4):
        agent.learn(agent.decide(actions), reward=0.5, cost=0.1)
    agent.decide(actions)
    agent.decide(actions)
    agent.save(folder / "agent.json", overwrite=True)
    return folder / "agent.json"


def rewritten(path: Path, change: Callable[[dict[str, Any]], Any], signed: bool = True) -> Path:
    """Change the content of a file, or replace it by what `change` returns; signed: with a digest that fits."""
    content = json.loads(path.read_text(encoding="utf-8"))
    replaced = change(content)
    content = content if replaced is None else replaced
    if signed and isinstance(content, dict) and "digest" in content:
        content["digest"] = storage.compute_digest(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def put(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        content[key] = value

    return change


def setting(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        content["policy"]["settings"][key] = value

    return change


def memory(change: Callable[[list[Any]], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda content: put("memory", change(content["memory"]))(content)


def waiting(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda content: put("played", change(content["played"]))(content)


def without(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda content: {name: value for name, value in content.items() if name != key}


def entry(position: int, value: Any) -> Callable[[dict[str, Any]], None]:
    """Replace a part of every decision that waits: 0 is the action, 1 its place, 2 the step."""
    return waiting(lambda entries: {r: [*e[:position], value, *e[position + 1 :]] for r, e in entries.items()})


def queue(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: put(key, value)(content["queue"])


SPOILED: dict[str, tuple[Callable[[dict[str, Any]], Any], ErrorCode]] = {
    "newer version": (put("version", storage.VERSION + 1), ErrorCode.FILE_OF_OTHER_VERSION),
    "no version": (without("version"), ErrorCode.FILE_OF_OTHER_VERSION),
    "version as a truth": (put("version", True), ErrorCode.FILE_OF_OTHER_VERSION),
    "other format": (put("format", "pickle"), ErrorCode.FILE_WRONG_KIND),
    "a list": (lambda content: [content], ErrorCode.FILE_WRONG_KIND),
    **{
        f"no {name}": (without(name), ErrorCode.FILE_CORRUPT)
        for name in ("policy", "seed", "memory", "played", "queue", "digest")
    },
    "a policy of text": (put("policy", "LCLUCB"), ErrorCode.FILE_INVALID),
    "an unknown policy": (put("policy", {"kind": "Magic", "settings": {}}), ErrorCode.FILE_CORRUPT),
    "a policy of many kinds": (put("policy", {"kind": ["LCLUCB"], "settings": {}}), ErrorCode.FILE_CORRUPT),
    "a policy that is none": (put("policy", {"kind": "AtLeast", "settings": {"value": 0.1}}), ErrorCode.FILE_INVALID),
    "an unknown setting": (setting("magic", 1), ErrorCode.FILE_CORRUPT),
    "a refused setting": (setting("delta", 5), ErrorCode.FILE_INVALID),
    "a setting of 400 digits": (setting("noise", 10**400), ErrorCode.FILE_INVALID),
    "a threshold without slack": (setting("threshold", 0.05), ErrorCode.FILE_INVALID),
    "a memory cut short": (memory(lambda values: values[:-1]), ErrorCode.STATE_MISMATCH),
    "a memory too long": (memory(lambda values: [*values, 0.0]), ErrorCode.STATE_MISMATCH),
    "an empty memory": (memory(lambda values: []), ErrorCode.STATE_MISMATCH),
    "infinity in the memory": (memory(lambda values: [float("inf"), *values[1:]]), ErrorCode.STATE_MISMATCH),
    "text in the memory": (memory(lambda values: ["0.5", *values[1:]]), ErrorCode.FILE_INVALID),
    "rows in the memory": (memory(lambda values: [values, values[:1]]), ErrorCode.FILE_INVALID),
    "a negative seed": (put("seed", -1), ErrorCode.FILE_INVALID),
    "a generation of text": (put("generation", "x"), ErrorCode.FILE_INVALID),
    "a round before those waiting": (queue("end", 3), ErrorCode.FILE_CORRUPT),
    "a round that is no number": (queue("end", float("nan")), ErrorCode.FILE_CORRUPT),
    "a head beyond the end": (queue("heads", [9]), ErrorCode.FILE_INVALID),
    "a table of text": (queue("status", "x"), ErrorCode.FILE_CORRUPT),
    "waiting in a list": (waiting(lambda entries: [1, 2]), ErrorCode.FILE_CORRUPT),
    "waiting for a word": (waiting(lambda entries: {"x": next(iter(entries.values()))}), ErrorCode.FILE_CORRUPT),
    "waiting for half": (waiting(lambda entries: {r: e[:2] for r, e in entries.items()}), ErrorCode.FILE_CORRUPT),
    "waiting without its action": (waiting(lambda entries: {}), ErrorCode.FILE_INVALID),
    "a place of text": (entry(1, "0"), ErrorCode.FILE_CORRUPT),
    "a place below all": (entry(1, -99), ErrorCode.FILE_INVALID),
    "a step that is no number": (entry(2, float("nan")), ErrorCode.FILE_INVALID),
}


@pytest.mark.parametrize(("change", "code"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_file_is_refused_by_name(change: Any, code: ErrorCode, tmp_path: Path) -> None:
    """Its digest fits, so that only the check in question can refuse it."""
    path = rewritten(written(tmp_path), change)
    with refused(InvalidFile, path, code):
        Agent.load(path)


def test_a_file_that_was_rewritten_with_a_digest_that_fits_is_read(tmp_path: Path) -> None:
    """Else all the spoiled ones would be refused for their digest."""
    assert Agent.load(rewritten(written(tmp_path), put("seed", 5))).seed == 5


@pytest.mark.parametrize(
    ("policy", "action", "part"),
    [
        (LINEAR, [0.1], "number of features"),
        (LINEAR, [0.1, float("nan")], "nan"),
        (LINEAR, [0.1, 10**400], "actions"),
        (LINEAR, None, "actions"),
        (LINEAR, 1, "actions"),
        (PULLS, 3, "arm"),
        (PULLS, -1, "arm"),
        (PULLS, 0.5, "arm"),
        (PULLS, [1], "arm"),
        (PULLS, 10**400, "arm"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, LCLUCB | OPB) else repr(value)[:20],
)
def test_an_action_that_was_never_played_is_refused(policy: Any, action: Any, part: str, tmp_path: Path) -> None:
    """Kernels do not check bounds: an arm or a vector that does not fit would write where nothing is."""
    path = rewritten(written(tmp_path, policy), entry(0, action))
    with refused(InvalidFile, ErrorCode.FILE_INVALID, path, part):
        Agent.load(path)


@pytest.mark.parametrize("arms", [10**15, 10**400, 4], ids=["too many", "400 digits", "one more"])
def test_arms_beyond_those_of_the_memory_are_refused(arms: int, tmp_path: Path) -> None:
    path = rewritten(written(tmp_path, PULLS), setting("arms", arms))
    with refused(InvalidFile, path):
        Agent.load(path)


@pytest.mark.parametrize(("policy", "action"), [(LINEAR, [0.1, 0.2]), (PULLS, 2)], ids=["LCLUCB", "OPB"])
def test_another_action_that_may_have_been_played_is_taken(policy: Any, action: Any, tmp_path: Path) -> None:
    """What is refused above is refused for its action, and for nothing else that was rewritten."""
    assert Agent.load(rewritten(written(tmp_path, policy), entry(0, action))).pending_count == 2


@pytest.mark.parametrize(
    "change", [lambda values: values[:-1], lambda values: values[:3], lambda values: [*values, 0.0]]
)
def test_a_memory_that_fits_no_dimension_is_refused(change: Any, tmp_path: Path) -> None:
    path = rewritten(written(tmp_path, FREE), memory(change))
    with refused(InvalidFile, ErrorCode.STATE_MISMATCH, path):
        Agent.load(path)


@pytest.mark.parametrize("policy", [LINEAR, PULLS], ids=["LCLUCB", "OPB"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.99])
def test_a_file_cut_short_is_refused(policy: Any, share: float, tmp_path: Path) -> None:
    path = written(tmp_path, policy)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refused(InvalidFile, ErrorCode.FILE_CORRUPT, path):
        Agent.load(path)


@pytest.mark.parametrize("content", [b"hello", b"\xff\xfe\x00\x01", b"\x80\x04\x95pickle", b"{'a': 1}"], ids=repr)
def test_what_is_not_json_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_bytes(content)
    with refused(InvalidFile, ErrorCode.FILE_CORRUPT, tmp_path / "agent.json"):
        Agent.load(tmp_path / "agent.json")


def test_linucb_with_the_papers_radius_is_saved_and_goes_on(tmp_path: Path) -> None:
    agent = Agent(LinUCB(noise=0.1, radius="paper"))
    agent.learn(agent.decide(np.eye(3)), reward=0.5)
    agent.save(tmp_path / "agent.json")
    assert (
        Agent.load(tmp_path / "agent.json").decide(np.eye(3)).optimistic_reward
        == agent.decide(np.eye(3)).optimistic_reward
    )


@pytest.mark.parametrize("policy", [LINEAR, PULLS, FREE], ids=["LCLUCB", "OPB", "LinUCB"])
def test_a_number_that_was_damaged_is_noticed(policy: Any, tmp_path: Path) -> None:
    """A memory of the right size with another number in it would decide on outcomes that never were."""
    more = memory(lambda values: [*values[:-1], values[-1] + 0.25])
    for change in (more, put("learned", 7), put("writer", "somebody"), put("digest", 7)):
        path = rewritten(written(tmp_path, policy), change, signed=False)
        with refused(InvalidFile, ErrorCode.DIGEST_MISMATCH, path):
            Agent.load(path)


def test_limits_that_changed_places_are_noticed(tmp_path: Path) -> None:
    Agent(NAMED).save(tmp_path / "agent.json")
    turned = setting("threshold", {"mapping": {"b": 0.4, "a": 0.5}})
    path = rewritten(tmp_path / "agent.json", turned, signed=False)
    with refused(InvalidFile, ErrorCode.DIGEST_MISMATCH, path):
        Agent.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"format": "stagewise-agent", "version": 8, "policy": ' + "[" * 900 + "]" * 900 + "}",
        '{"format": "stagewise-agent", "version": 8, "policy": ' + '{"mapping": {"a": ' * 450 + "1" + "}}" * 450 + "}",
    ],
    ids=["lists", "mappings", "in its place", "mappings in their place"],
)
def test_a_file_nested_too_deep_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text(text, encoding="utf-8")
    with refused(InvalidFile, ErrorCode.FILE_CORRUPT, tmp_path / "agent.json"):
        Agent.load(tmp_path / "agent.json")


@pytest.mark.parametrize("number", ["9" * 5000, "1e400", "-1e400", "NaN", "Infinity"], ids=lambda text: text[:9])
@pytest.mark.parametrize("position", ["seed", "memory"])
def test_numbers_that_are_none_are_refused_wherever_they_stand(position: str, number: str, tmp_path: Path) -> None:
    content = json.loads(written(tmp_path).read_text())
    content[position] = "HERE"
    (tmp_path / "agent.json").write_text(json.dumps(content).replace('"HERE"', number), encoding="utf-8")
    with refused_with(InvalidFile, ErrorCode.DIGEST_MISMATCH, ErrorCode.FILE_CORRUPT, names="agent.json"):
        Agent.load(tmp_path / "agent.json")


@pytest.mark.parametrize("path", [None, b"agent.json", 3, "", "a\0b", "a\udcff", "x" * 300], ids=lambda p: repr(p)[:20])
def test_odd_paths_are_refused(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with refused_with(InvalidFile, ErrorCode.INVALID_NAME, ErrorCode.WRONG_TYPE):
        Agent(LINEAR).save(path)
    with refused_with(InvalidFile, ErrorCode.INVALID_NAME, ErrorCode.WRONG_TYPE):
        Agent.load(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_policy_given_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    again = LCLUCB(safe_action=SafeAction(features=(0.3, 0.4), reward=0.1, cost=0.1), threshold=0.5, noise=0.1)
    assert Agent.load(path, policy=again).round == 6


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        (dataclasses.replace(LINEAR, threshold=0.4), [ErrorCode.PROBLEM_MISMATCH]),
        (dataclasses.replace(LINEAR, noise=0.2), [ErrorCode.PROBLEM_MISMATCH]),
        (
            dataclasses.replace(LINEAR, safe_action=SafeAction(features=[0.3, 0.4], cost=0.1)),
            [ErrorCode.PROBLEM_MISMATCH],
        ),
        (
            ROFUL(safe_action=LINEAR.safe_action, threshold=0.5, noise=0.1),
            [ErrorCode.PROBLEM_MISMATCH],
        ),
        (PULLS, [ErrorCode.PROBLEM_MISMATCH]),
    ],
    ids=["threshold", "noise", "safe action", "sister", "arms"],
)
def test_a_file_of_another_policy_is_refused(policy: Any, parts: list[str], tmp_path: Path) -> None:
    path = written(tmp_path)
    with refused(InvalidFile, path, *parts):
        Agent.load(path, policy=policy)


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ({"threshold": 0.5}, {"threshold": [0.5]}),
        ({"threshold": 0.5}, {"threshold": {"cost": Decimal("0.5")}}),
        ({"threshold": 1, "mean_cost_bound": 2}, {"threshold": 1.0, "mean_cost_bound": 2.0}),
        ({"noise": 1}, {"noise": 1.0}),
        ({"noise": Fraction(1, 4)}, {"noise": np.float32(0.25)}),
        ({"noise": (1, 2)}, {"noise": np.array([1.0, 2.0])}),
        (
            {"safe_action": SafeAction(features=[0, 1], cost=0)},
            {"safe_action": SafeAction(features=[0.0, 1.0], cost=0.0)},
        ),
    ],
    ids=["listed", "named", "limit", "noise", "fraction", "array", "safe action"],
)
def test_a_setting_may_be_spelled_otherwise(kept: Any, given: Any, tmp_path: Path) -> None:
    for one, other in ((kept, given), (given, kept)):
        Agent(dataclasses.replace(LINEAR, **one)).save(tmp_path / "agent.json", overwrite=True)
        assert Agent.load(tmp_path / "agent.json", policy=dataclasses.replace(LINEAR, **other)).round == 0


def test_limits_in_another_order_are_refused(tmp_path: Path) -> None:
    """Costs given by position would go to the wrong limit."""
    Agent(NAMED).save(tmp_path / "agent.json")
    turned = dataclasses.replace(NAMED, threshold={"b": 0.4, "a": 0.5})
    with refused(InvalidFile, ErrorCode.PROBLEM_MISMATCH, tmp_path / "agent.json"):
        Agent.load(tmp_path / "agent.json", policy=turned)
    safe = SafeAction(features=[0.3, 0.4], cost={"b": 0.2, "a": 0.1})
    assert Agent.load(tmp_path / "agent.json", policy=dataclasses.replace(NAMED, safe_action=safe)).round == 0


def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path: Path) -> None:
    agent = Agent(LINEAR)
    with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, tmp_path / "none"):
        agent.save(tmp_path / "none" / "agent.json")
    with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, tmp_path):
        agent.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with refused(InvalidFile, ErrorCode.FILE_NOT_FOUND, tmp_path / "nobody.json"):
        Agent.load(tmp_path / "nobody.json")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with refused(InvalidFile, ErrorCode.FILE_WRONG_KIND, tmp_path):
        Agent.load(tmp_path)


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = written(tmp_path)
    content = path.read_bytes()
    agent = Agent.load(path)
    agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.1)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, step, fail)
    with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, path):
        agent.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert Agent.load(path).round == 6
    agent.save(path)
    assert Agent.load(path).round == 7


def test_a_memory_that_no_file_can_hold_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    agent = Agent(LINEAR)
    agent._learned.state.memory[-1] = np.inf
    with refused(InvalidProblem, ErrorCode.NOT_FINITE):
        agent.save(tmp_path / "agent.json")
    assert list(tmp_path.iterdir()) == []


class Unknown:
    """A policy of the user's own."""

    start, decide, learn = LINEAR.start, LINEAR.decide, LINEAR.learn


def test_a_policy_that_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    content = path.read_bytes()
    with refused(InvalidProblem, ErrorCode.NOT_SERIALIZABLE):
        Agent(Unknown()).save(path)
    assert path.read_bytes() == content


def test_a_file_is_found_by_text_too(tmp_path: Path) -> None:
    agent = Agent(LINEAR, seed=3)
    agent.save(str(tmp_path / "agent"))
    assert Agent.load(str(tmp_path / "agent")).seed == 3
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


@pytest.mark.parametrize(
    "policy",
    [
        LCLUCB(
            safe_action=SafeAction(features=np.array([0.3, 0.4]), cost={"a": 0.2, "b": np.float32(0.25)}),
            threshold={"b": AtLeast(TimesSafe(0.5)), "a": TimesSafe(2)},
            noise=(0.1, 0.2, 0.3),
            norm_bound=np.array([1.0, 2.0, 3.0]),
            delta=np.float64(0.1),
        ),
        OPLB(
            safe_action=SafeAction(features=[0.0, 0.0]), threshold=np.array([0.5, 0.1]), noise=0.1, mean_cost_bound=None
        ),
        OPB(
            arms=np.int64(3),
            safe_action=SafeAction(arm=np.int64(2), cost=[0.1]),
            threshold=(0.5,),
            horizon=100,
            interval="hoeffding",
        ),
        AlwaysSafe(safe_action=SafeAction(arm=1), threshold={"mapping": 0.1, "kind": 0.2}),
        LCLUCB(safe_action=SafeAction(features=[0.0]), threshold=Decimal("0.5"), noise=Fraction(1, 10)),
    ],
    ids=["limits", "arrays", "arms", "odd names", "exact numbers"],
)
def test_whatever_a_policy_takes_can_be_saved(policy: Any, tmp_path: Path) -> None:
    agent = Agent(policy, seed=2**64 - 1)
    agent.save(tmp_path / "agent.json")
    loaded = Agent.load(tmp_path / "agent.json")
    assert loaded.seed == 2**64 - 1
    assert type(loaded.policy) is type(policy)
    assert loaded.policy.thresholds.names == policy.thresholds.names
    assert np.array_equal(loaded.policy.thresholds.values, policy.thresholds.values)
    assert np.array_equal(loaded.policy.thresholds.signs, policy.thresholds.signs)
    if not isinstance(policy, AlwaysSafe):
        assert np.array_equal(loaded.policy.settings, policy.settings)
        assert np.array_equal(loaded.policy.layout, policy.layout)


def test_a_saved_agent_keeps_the_limits_it_decided_under(tmp_path: Path) -> None:
    """The user's own mapping is changed after the policy was made: the file must not pick up the looser limit."""
    threshold, cost, noise = {"spend": 0.5}, {"spend": 0.1}, [0.1, 0.1]
    policy = LCLUCB(safe_action=SafeAction(features=[0.3, 0.4], cost=cost), threshold=threshold, noise=noise)
    threshold["spend"], cost["spend"], noise[1] = 0.9, 0.2, 0.001
    Agent(policy).save(tmp_path / "agent.json")
    loaded = Agent.load(tmp_path / "agent.json").policy
    assert loaded.thresholds.values.tolist() == [0.5]
    assert np.array_equal(loaded.settings, policy.settings)
