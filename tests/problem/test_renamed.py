"""Old names: whoever gives one is told the new one, and files that hold them still load."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.cli.spec import read
from stagewise.problem.renamed import today
from stagewise.reports.certificate import Certificate
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.verify import TOLERANCE, misstated, named_today, played_in
from stagewise.worlds.family import rebuilt

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, Any] = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": 0.3, "noise": 0.1}
WORLD: dict[str, Any] = {"actions": sw.Rays(np.eye(2)), "noise": 0.1}
CERTIFICATES = sorted((ROOT / "docs" / "certificates").glob("*/certificate.json"))
FILE = """
[simulation]
rounds = 5
[world]
kind = "linear"
OLD = [0.6, 0.8]
noise = 0.1
actions = { kind = "rays", features = [[1.0, 0.0], [0.0, 1.0]] }
[policy]
kind = "LCLUCB"
threshold = 0.3
noise = 0.1
[policy.safe_action]
features = [0.0, 0.0]
"""


@pytest.mark.parametrize(
    ("make", "old", "new"),
    [
        (lambda: sw.LCLUCB(**SETTINGS, parameter_bound=1.0), "parameter_bound", "norm_bound"),
        (lambda: sw.LinUCB(noise=0.1, parameter_bound=1.0), "parameter_bound", "norm_bound"),
        (lambda: sw.LCLUCB(**SETTINGS, certify=False), "certify", "bound_gap"),
        (lambda: sw.ROFUL(**SETTINGS, starts=8), "starts", "directions"),
        (lambda: sw.simulate(sw.LinUCB(noise=0.1), None, rounds=2, start=None), "start", "learned"),  # type: ignore[call-arg, arg-type]
        (
            lambda: sw.KernelOPLB(**SETTINGS, kernel=sw.RBF(lengthscale=1.0), norm_bound=1.0, tolerance=1e-3),
            "tolerance",
            "novelty",
        ),
        (lambda: sw.LinearWorld(**WORLD, theta=[1.0, 0.0], mu=[0.0, 1.0]), "theta", "reward"),
        (lambda: sw.LinearWorld(**WORLD, reward=[1.0, 0.0], mu=[0.0, 1.0]), "mu", "cost"),
        (
            lambda: sw.LinearWorld(**WORLD, reward=[1.0, 0.0], cost=[0.0, 1.0], noise_kind="uniform"),
            "noise_kind",
            "outcomes",
        ),
        (lambda: sw.OPLB(**SETTINGS, radius="mixture"), "radius='mixture'", "radius='joint'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_old_name_is_answered_with_the_new_one(make: Any, old: str, new: str) -> None:
    with refused(sw.InvalidProblem, old, "is now", new):
        make()


@pytest.mark.parametrize("name", ["tolerance", "budget", "search"])
def test_settings_of_the_exact_method_say_where_it_is(name: str) -> None:
    with refused(sw.InvalidProblem, f"`{name}` is gone with method='exact'", "ExactOPLB of stagewise_reproduction"):
        sw.OPLB(**SETTINGS, **{name: 1})
    arm = {"safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.1), "threshold": 0.3}
    with refused(sw.InvalidProblem, f"`{name}` is gone", "ExactOPNLB of stagewise_reproduction"):
        sw.OPNLB(reward_class=[[0.1, 0.5]], cost_class=[[0.1, 0.2]], **arm, **{name: 1})
    with pytest.raises(TypeError, match=name):
        sw.LCLUCB(**SETTINGS, **{name: 1})


def test_a_file_of_safe_lts_from_when_it_had_an_optimism_loads() -> None:
    assert today(sw.SafeLTS, {**SETTINGS, "optimism": "inflated"}) == SETTINGS
    assert today(sw.LCLUCB, {"optimism": "inflated"}) == {"optimism": "inflated"}


def test_a_set_says_what_its_start_is_called_now() -> None:
    with pytest.raises(AttributeError, match="`start` of a set of actions is now `safe_of_round`"):
        _ = sw.Finite(np.eye(2), safe=0).start
    assert sw.Finite(np.eye(2), safe=0).safe_of_round.place == 0  # type: ignore[union-attr]


def test_a_decision_that_was_written_down_with_a_start_is_adopted() -> None:
    policy = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=sw.SafeAction(cost=0.1), dimension=2)
    agent = sw.Agent(policy)
    told = sw.Replica(agent.snapshot(), "pod-1").decide(sw.Rays(np.eye(2), safe=[0.1, 0.2])).plain()
    then = {**{name: value for name, value in told.items() if name != "safe"}, "start": told["safe"]}
    agent.adopt(then)
    ((_, played),) = agent._ledger.open.items()
    assert played.safe is not None
    assert played.safe.features.tolist() == [0.1, 0.2]


def test_a_folder_that_was_begun_with_a_start_goes_on(tmp_path: Path) -> None:
    arm: dict[str, Any] = {"safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.2}
    policy, world = sw.OPB(arms=2, **arm), sw.ArmsWorld(reward=[0.1, 0.5], cost=[0.0, 0.1])
    plan: dict[str, Any] = {"rounds": 3, "learned": sw.Agent(policy), "out": tmp_path, "progress": False}
    sw.simulate(policy, world, **plan)
    path = tmp_path / "plan.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"learned"', '"start"'), encoding="utf-8")
    assert '"start"' in path.read_text(encoding="utf-8")
    sw.simulate(policy, world, **plan)


def test_a_name_that_never_was_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="theta"):
        sw.LCLUCB(**SETTINGS, theta=1.0)


@pytest.mark.parametrize(("old", "new"), [("theta", "reward"), ("mu", "cost")])
def test_a_toml_file_with_an_old_name_is_told_the_new_one(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text(FILE.replace("OLD", old), encoding="utf-8")
    with refused(sw.InvalidFile, path.name, f"`{old}` is now `{new}`"):
        read(path)


@pytest.mark.parametrize("name", ["agent_lclucb_0_1_0", "agent_kernel_oplb_0_1_0"])
def test_an_agent_that_was_saved_with_old_names_goes_on(name: str) -> None:
    """Written by the last stagewise that had them: two rounds of Agent(LCLUCB or KernelOPLB, seed=3), and save."""
    agent = sw.Agent.load(ROOT / "tests" / "golden" / f"{name}.json")
    assert agent.round == 2
    if isinstance(agent.policy, sw.LCLUCB):
        assert (agent.policy.norm_bound, agent.policy.radius, agent.policy.bound_gap) == (0.9, "joint", False)
        assert agent.policy.thresholds.names == ("mu",)  # a limit's name is its owner's
        decision = agent.decide(sw.Rays(np.eye(2)))
        assert (decision.step, decision.hoped) == (0.3241344160752531, 2.256190842749949)
    else:
        assert agent.policy.novelty == 1e-3
        decision = agent.decide(sw.Finite([[0.2], [0.7]]))
        assert decision.hoped == 2.2523107446328243


def test_settings_of_methods_that_are_gone_are_left_out() -> None:
    class Fewer:
        def __init__(self, *, method: str) -> None: ...

    assert today(Fewer, {"method": "lp", "tolerance": 1e-3, "budget": 300}) == {"method": "lp"}


def test_a_world_that_described_itself_with_old_names_is_built_again() -> None:
    world = sw.LinearWorld(**WORLD, reward=[0.6, 0.8], cost=[0.8, 0.6], outcomes="uniform")
    told = world.description()
    old = {"theta": "reward", "mu": "cost", "noise_kind": "outcomes"}
    then = {name: told[old.get(name, name)] for name in ("kind", *old, "noise", "actions", "features")}
    assert rebuilt(then).description() == told


@pytest.mark.parametrize("path", CERTIFICATES, ids=lambda path: path.parent.name)
def test_certificates_with_old_names_still_say_what_their_numbers_say(path: Path) -> None:
    content = named_today(Certificate.load(path).content)
    if content["world"]["family"] != "callable":
        assert misstated(content, Pairs(*played_in(content, None, None)), TOLERANCE) == []
