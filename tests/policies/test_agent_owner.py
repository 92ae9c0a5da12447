"""One file, one agent: what another one saved is noticed and left alone."""

import copy
import json
import multiprocessing
import os
import pickle
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import ONE, PULLS
from tests.problem.refusal import refused

from stagewise import Agent, ArmSet, InvalidFile, InvalidProblem
from stagewise.files import paths as atomic_write
from stagewise.problem.errors import ErrorCode

SAVES, SAVERS = 25, 2


def content(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return told


def saved(path: Path) -> Agent:
    """Return an agent that has learned something and was saved."""
    agent = Agent(PULLS, seed=9)
    agent.learn(agent.decide(ArmSet(3)), reward=0.5, cost=0.1)
    agent.save(path)
    return agent


def test_the_second_of_two_that_loaded_one_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    saved(path)
    first, second = Agent.load(path), Agent.load(path)
    assert first.decide(ArmSet(3)).action == second.decide(ArmSet(3)).action, "the reason for all this"
    first.save(path)
    before = path.read_bytes()
    with refused(InvalidFile, ErrorCode.FILE_CHANGED, path):
        second.save(path)
    assert path.read_bytes() == before
    first.save(path)
    second.save(tmp_path / "elsewhere.json")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.json", "elsewhere.json"]


def test_the_one_that_went_on_is_refused_after_it_was_loaded_and_saved_elsewhere(tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent.json")
    Agent.load(tmp_path / "agent.json").save(tmp_path / "agent.json")
    with refused(InvalidFile, ErrorCode.FILE_CHANGED):
        agent.save(tmp_path / "agent.json")
    agent.save(tmp_path / "agent.json", overwrite=True)
    agent.save(tmp_path / "agent.json")


def test_looking_at_a_file_takes_nothing_from_its_owner(tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent.json")
    for _ in range(3):
        assert Agent.load(tmp_path / "agent.json").round == agent.round
        agent.decide(ArmSet(3))
        agent.save(tmp_path / "agent.json")


def test_an_agent_may_be_saved_again_and_again_and_under_many_names(tmp_path: Path) -> None:
    agent = saved(tmp_path / "a.json")
    for name in ("a", "b", "a", "b", "b", "a"):
        agent.decide(ArmSet(3))
        agent.save(tmp_path / f"{name}.json")
    assert content(tmp_path / "a.json")["generation"] == 7
    assert Agent.load(tmp_path / "a.json").round == agent.round


@pytest.mark.parametrize("there", [b"", b"my notes", None], ids=["empty", "notes", "agent"])
def test_a_file_that_the_agent_does_not_know_is_replaced_on_demand_only(there: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    if there is None:
        saved(path)
    else:
        path.write_bytes(there)
    before = path.read_bytes()
    agent = Agent(ONE)
    with refused(InvalidFile, ErrorCode.FILE_EXISTS, path):
        agent.save(path)
    assert path.read_bytes() == before
    agent.save(path, overwrite=True)
    agent.save(path)
    assert Agent.load(path).policy.thresholds.names == ("cost",)


def test_a_file_that_was_deleted_may_be_written_again(tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent.json")
    (tmp_path / "agent.json").unlink()
    Agent(ONE).save(tmp_path / "agent.json")
    with refused(InvalidFile, ErrorCode.FILE_CHANGED):
        agent.save(tmp_path / "agent.json")
    (tmp_path / "agent.json").unlink()
    agent.save(tmp_path / "agent.json")


def test_a_file_put_back_from_a_backup_is_still_known(tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent.json")
    kept = (tmp_path / "agent.json").read_bytes()
    (tmp_path / "agent.json").unlink()
    (tmp_path / "agent.json").write_bytes(kept)
    agent.save(tmp_path / "agent.json")


def test_one_file_by_two_names_is_one(tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent.json")
    (tmp_path / "link").symlink_to(tmp_path / "agent.json")
    agent.save(tmp_path / "link")
    agent.save(str(tmp_path / "." / "agent.json"))
    assert (tmp_path / "link").is_symlink()
    assert Agent.load(tmp_path / "link").round == 1


@pytest.mark.parametrize("again", [lambda agent: pickle.loads(pickle.dumps(agent)), copy.copy, copy.deepcopy])
def test_a_copy_draws_the_same_numbers_too_and_is_refused_after_the_other(again: Any, tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent.json")
    again(agent).save(tmp_path / "agent.json")
    with refused(InvalidFile, ErrorCode.FILE_CHANGED):
        agent.save(tmp_path / "agent.json")


@pytest.mark.parametrize("switch", [1, None, "yes", [True]], ids=repr)
def test_overwrite_is_a_switch(switch: Any, tmp_path: Path) -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        Agent(ONE).save(tmp_path / "agent.json", overwrite=switch)
    assert list(tmp_path.iterdir()) == []


def save_often(path: Path, seed: int, overwrite: bool, answers: Any) -> None:
    """Save an agent that grows, and tell how it went."""
    agent, done = Agent(ONE, seed=seed), []
    for _ in range(SAVES):
        agent.learn(agent.decide(np.eye(2)), reward=0.5, cost=0.1)
        try:
            agent.save(path, overwrite=overwrite)
            done.append("saved")
        except InvalidFile as refusal:
            done.append(str(refusal))
        except BaseException as error:
            done.append(repr(error))
    answers.put(done)


def raced(path: Path, overwrite: bool) -> tuple[list[list[str]], int]:
    """Let processes save to one path while this one loads; return what the savers say, and how often it loaded."""
    processes = multiprocessing.get_context("spawn")
    answers = processes.SimpleQueue()
    savers = [processes.Process(target=save_often, args=(path, seed, overwrite, answers)) for seed in range(SAVERS)]
    for saver in savers:
        saver.start()
    loads = 0
    while any(saver.is_alive() for saver in savers):
        if path.exists():
            assert 1 <= Agent.load(path).round <= SAVES
            loads += 1
        sleep(0.002)
    for saver in savers:
        saver.join()
    return [answers.get() for _ in savers], loads


def test_a_loader_sees_whole_files_only_while_two_processes_save(tmp_path: Path) -> None:
    told, loads = raced(tmp_path / "agent.json", overwrite=True)
    assert [set(one) for one in told] == [{"saved"}] * SAVERS
    assert loads > 0
    assert [file.name for file in tmp_path.iterdir()] == ["agent.json"]


def test_of_two_processes_that_save_one_file_one_gets_through(tmp_path: Path) -> None:
    told, _ = raced(tmp_path / "agent.json", overwrite=False)
    owner, other = sorted(told, key=lambda one: -one.count("saved"))
    assert set(owner) == {"saved"}
    assert all("neither loaded nor saved" in line for line in other)
    assert [file.name for file in tmp_path.iterdir()] == ["agent.json"]


def test_an_agent_decides_and_learns_while_it_is_being_saved(tmp_path: Path, monkeypatch: Any) -> None:
    agent, writing, written = saved(tmp_path / "agent.json"), Event(), Event()
    flush = os.fsync

    def wait(descriptor: int) -> None:
        writing.set()
        assert written.wait(60)
        flush(descriptor)

    monkeypatch.setattr(atomic_write.os, "fsync", wait)
    saver = Thread(target=agent.save, args=[tmp_path / "agent.json"])
    saver.start()
    assert writing.wait(60)
    agent.learn(agent.decide(ArmSet(3)), reward=0.5, cost=0.1)
    agent.decide(ArmSet(3))
    assert (agent.round, agent.pending_count) == (3, 1)
    written.set()
    saver.join()
    there = Agent.load(tmp_path / "agent.json")
    assert (there.round, there.pending_count) == (1, 0), "as it was when the save began"
    agent.save(tmp_path / "agent.json")
    assert Agent.load(tmp_path / "agent.json").round == 3


def test_threads_that_save_take_turns_and_the_last_state_stays(tmp_path: Path) -> None:
    agent, troubles = saved(tmp_path / "agent.json"), []

    def work() -> None:
        try:
            for _ in range(30):
                agent.learn(agent.decide(ArmSet(3)), reward=0.5, cost=0.1)
                agent.save(tmp_path / "agent.json")
        except BaseException as error:
            troubles.append(error)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert Agent.load(tmp_path / "agent.json").round == agent.round == 121
