"""Saved agents: whole, refused in a helpful sentence, or the old file as it was."""

import dataclasses
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    Agent,
    AlwaysSafe,
    Arms,
    AtLeast,
    InvalidFile,
    LinUCB,
    RelativeToSafe,
    SafeAction,
    StagewiseError,
)
from stagewise.policies import saved

LINEAR = LCLUCB(safe_action=SafeAction(features=[0.3, 0.4], reward=0.1, cost=0.1), threshold=0.5, noise=0.1)
PULLS = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.1), threshold=0.5)
FREE = LinUCB(noise=0.1)


def written(folder: Path, policy: Any = LINEAR) -> Path:
    """Return the file of an agent that has learned something and waits for two outcomes."""
    agent = Agent(policy, seed=9)
    actions = Arms(3) if policy is PULLS else np.eye(2)
    for _ in range(4):
        agent.learn(agent.decide(actions), reward=0.5, cost=0.1)
    agent.decide(actions)
    agent.decide(actions)
    agent.save(folder / "agent.json")
    return folder / "agent.json"


def rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Change the content of a file, or replace it by what `change` returns."""
    content = json.loads(path.read_text(encoding="utf-8"))
    replaced = change(content)
    path.write_text(json.dumps(content if replaced is None else replaced), encoding="utf-8")
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
    return lambda content: put("waiting", change(content["waiting"]))(content)


def without(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda content: {name: value for name, value in content.items() if name != key}


SPOILED: dict[str, tuple[Callable[[dict[str, Any]], Any], list[str]]] = {
    "newer version": (put("version", 3), ["version 3", "reads version 2"]),
    "older version": (put("version", 1), ["version 1", "reads version 2", "learn_log"]),
    "no version": (without("version"), ["version None", "reads version 2"]),
    "version as text": (put("version", "1"), ["version '1'", "reads version 2"]),
    "other format": (put("format", "pickle"), ["not a saved agent", "stagewise-agent"]),
    "no format": (without("format"), ["not a saved agent", "stagewise-agent"]),
    "a list": (lambda content: [content], ["not a saved agent"]),
    "a number": (lambda content: 3, ["not a saved agent"]),
    "no policy": (without("policy"), ["policy"]),
    "no seed": (without("seed"), ["seed"]),
    "no round": (without("round"), ["round"]),
    "no memory": (without("memory"), ["memory"]),
    "no waiting": (without("waiting"), ["waiting"]),
    "a policy of text": (put("policy", "LCLUCB"), []),
    "an unknown policy": (put("policy", {"kind": "Magic", "settings": {}}), ["Magic"]),
    "a policy without settings": (put("policy", {"kind": "LCLUCB"}), ["settings"]),
    "a policy that is none": (put("policy", {"kind": "AtLeast", "settings": {"value": 0.1}}), []),
    "an unknown setting": (setting("magic", 1), ["magic"]),
    "a refused setting": (setting("delta", 5), ["refused", "delta is 5.0", "between 0 and 1"]),
    "a threshold without slack": (setting("threshold", 0.05), ["refused", "no slack"]),
    "a memory cut short": (memory(lambda values: values[:-1]), ["memory", "fit"]),
    "a memory too long": (memory(lambda values: [*values, 0.0]), ["memory", "fit"]),
    "an empty memory": (memory(lambda values: []), ["memory", "fit"]),
    "a nested memory": (memory(lambda values: [values]), ["memory", "fit"]),
    "nan in the memory": (memory(lambda values: [float("nan"), *values[1:]]), ["memory", "fit"]),
    "infinity in the memory": (memory(lambda values: [float("inf"), *values[1:]]), ["memory", "fit"]),
    "null in the memory": (memory(lambda values: [None, *values[1:]]), ["memory"]),
    "text in the memory": (memory(lambda values: ["x", *values[1:]]), []),
    "a memory of text": (put("memory", "0.1"), []),
    "a seed of text": (put("seed", "x"), []),
    "a negative seed": (put("seed", -1), ["seed is -1"]),
    "a seed too large": (put("seed", 2**64), ["seed"]),
    "a fraction for a seed": (put("seed", 1.5), ["seed"]),
    "a negative round": (put("round", -1), ["round"]),
    "a round of text": (put("round", "x"), []),
    "a round before those waiting": (put("round", 3), ["round"]),
    "waiting in a list": (waiting(lambda entries: [1, 2]), []),
    "waiting for a word": (waiting(lambda entries: {"x": next(iter(entries.values()))}), []),
    "waiting for nothing": (waiting(lambda entries: dict.fromkeys(entries)), []),
}


@pytest.mark.parametrize(("change", "parts"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_file_is_refused_by_name(change: Any, parts: list[str], tmp_path: Path) -> None:
    path = rewritten(written(tmp_path), change)
    with refused(InvalidFile, path, *parts):
        Agent.load(path)


def replayed(path: Path, action: Any) -> Path:
    """Replace what is said to have been played, and seal the file again: its digest is right."""

    def change(content: dict[str, Any]) -> None:
        content["waiting"] = {round_: [action, *place] for round_, (_, *place) in content["waiting"].items()}
        content["digest"] = saved.digest(content)

    return rewritten(path, change)


@pytest.mark.parametrize(
    ("policy", "action", "part"),
    [
        (LINEAR, [0.1], "1 features"),
        (LINEAR, [0.1, float("nan")], ""),
        (LINEAR, None, "the actions"),
        (LINEAR, 0.5, "the actions"),
        (PULLS, 3, "0 to 2"),
        (PULLS, -1, "0 to 2"),
        (PULLS, 0.5, "0 to 2"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, LCLUCB | OPB) else repr(value),
)
def test_an_action_that_was_never_played_is_refused(policy: Any, action: Any, part: str, tmp_path: Path) -> None:
    """Kernels do not check bounds: an arm or a vector that does not fit would write where nothing is."""
    path = replayed(written(tmp_path, policy), action)
    with refused(InvalidFile, path, part):
        Agent.load(path)


@pytest.mark.parametrize(("policy", "action"), [(LINEAR, [0.1, 0.2]), (PULLS, 2)], ids=["LCLUCB", "OPB"])
def test_another_action_that_may_have_been_played_is_taken(policy: Any, action: Any, tmp_path: Path) -> None:
    """What is refused above is refused for its action, and for nothing else that was rewritten."""
    assert Agent.load(replayed(written(tmp_path, policy), action)).waiting == 2


@pytest.mark.parametrize(
    "change", [lambda values: values[:-1], lambda values: values[:3], lambda values: [*values, 0.0]]
)
def test_a_memory_that_fits_no_dimension_is_refused(change: Any, tmp_path: Path) -> None:
    path = rewritten(written(tmp_path, FREE), memory(change))
    with refused(InvalidFile, path, "memory"):
        Agent.load(path)


@pytest.mark.parametrize("policy", [LINEAR, PULLS], ids=["LCLUCB", "OPB"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.99])
def test_a_file_cut_short_is_refused(policy: Any, share: float, tmp_path: Path) -> None:
    path = written(tmp_path, policy)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refused(InvalidFile, path, "not whole"):
        Agent.load(path)


@pytest.mark.parametrize("content", [b"hello", b"\xff\xfe\x00\x01", b"\x80\x04\x95pickle", b"{'a': 1}"], ids=repr)
def test_what_is_not_json_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_bytes(content)
    with refused(InvalidFile, tmp_path / "agent.json"):
        Agent.load(tmp_path / "agent.json")


@pytest.mark.parametrize("policy", [LINEAR, PULLS, FREE], ids=["LCLUCB", "OPB", "LinUCB"])
def test_a_number_that_was_damaged_is_noticed(policy: Any, tmp_path: Path) -> None:
    """A memory of the right size with another number in it would decide on outcomes that never were."""
    path = rewritten(written(tmp_path, policy), memory(lambda values: [*values[:-1], values[-1] + 0.25]))
    with refused(InvalidFile, path, "changed", "digest"):
        Agent.load(path)
    path = rewritten(written(tmp_path, policy), put("round", 7))
    with refused(InvalidFile, path, "changed", "digest"):
        Agent.load(path)


def test_a_file_without_a_digest_is_read(tmp_path: Path) -> None:
    path = rewritten(written(tmp_path), without("digest"))
    assert Agent.load(path).round == 6


def test_a_file_nested_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text("[" * 100_000, encoding="utf-8")
    with refused(InvalidFile, "not whole"):
        Agent.load(tmp_path / "agent.json")


def test_a_file_of_the_policy_given_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    again = LCLUCB(safe_action=SafeAction(features=(0.3, 0.4), reward=0.1, cost=0.1), threshold=0.5, noise=0.1)
    assert Agent.load(path, policy=again).round == 6


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        (dataclasses.replace(LINEAR, threshold=0.4), ["threshold = 0.5", "has 0.4", "learn_log"]),
        (dataclasses.replace(LINEAR, noise=0.2), ["noise = 0.1", "has 0.2"]),
        (dataclasses.replace(LINEAR, safe_action=SafeAction(features=[0.3, 0.4], cost=0.1)), ["safe_action"]),
        (ROFUL(safe_action=LINEAR.safe_action, threshold=0.5, noise=0.1), ["LCLUCB", "ROFUL"]),
        (PULLS, ["LCLUCB", "OPB"]),
    ],
    ids=["threshold", "noise", "safe action", "sister", "arms"],
)
def test_a_file_of_another_policy_is_refused(policy: Any, parts: list[str], tmp_path: Path) -> None:
    path = written(tmp_path)
    with refused(InvalidFile, path, *parts):
        Agent.load(path, policy=policy)


def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path: Path) -> None:
    agent = Agent(LINEAR)
    with refused(InvalidFile, "no folder", tmp_path / "none"):
        agent.save(tmp_path / "none" / "agent.json")
    with refused(InvalidFile, "is a folder", tmp_path):
        agent.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with refused(InvalidFile, tmp_path / "nobody.json", "does not exist"):
        Agent.load(tmp_path / "nobody.json")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with refused(InvalidFile, tmp_path):
        Agent.load(tmp_path)


@pytest.mark.parametrize("step", ["json.dump", "os.fsync", "os.replace"])
def test_a_write_that_fails_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = written(tmp_path)
    content = path.read_bytes()
    agent = Agent.load(path)
    agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.1)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    module, name = step.split(".")
    monkeypatch.setattr(getattr(saved, module), name, fail)
    with pytest.raises(OSError, match="the disk is full"):
        agent.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert Agent.load(path).round == 6
    agent.save(path)
    assert Agent.load(path).round == 7


class Unknown:
    """A policy of the user's own."""

    start, decide, learn, values, absorb, logged = (
        LINEAR.start,
        LINEAR.decide,
        LINEAR.learn,
        LINEAR.values,
        LINEAR.absorb,
        0,
    )


def test_a_policy_that_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    content = path.read_bytes()
    with pytest.raises(StagewiseError, match="Unknown cannot be saved"):
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
            threshold={"b": AtLeast(RelativeToSafe(0.5)), "a": RelativeToSafe(2)},
            noise=(0.1, 0.2, 0.3),
            parameter_bound=np.array([1.0, 2.0, 3.0]),
            delta=np.float64(0.1),
        ),
        OPLB(safe_action=SafeAction(features=[0.0, 0.0]), threshold=np.array([0.5, 0.1]), noise=0.1, cost_bound=None),
        OPB(arms=np.int64(3), safe_action=SafeAction(arm=np.int64(2), cost=[0.1]), threshold=(0.5,), horizon=100),
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
        assert np.array_equal(loaded.policy.numbers, policy.numbers)
        assert np.array_equal(loaded.policy.flags, policy.flags)


def test_a_saved_agent_keeps_the_limits_it_decided_under(tmp_path: Path) -> None:
    """The user's own mapping is changed after the policy was made: the file must not pick up the looser limit."""
    threshold, cost, noise = {"spend": 0.5}, {"spend": 0.1}, [0.1, 0.1]
    policy = LCLUCB(safe_action=SafeAction(features=[0.3, 0.4], cost=cost), threshold=threshold, noise=noise)
    threshold["spend"], cost["spend"], noise[1] = 0.9, 0.2, 0.001
    Agent(policy).save(tmp_path / "agent.json")
    loaded = Agent.load(tmp_path / "agent.json").policy
    assert loaded.thresholds.values.tolist() == [0.5]
    assert np.array_equal(loaded.numbers, policy.numbers)
