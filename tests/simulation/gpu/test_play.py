"""The GPU's loops without a GPU: they compile to PTX, and what cannot be played is refused with the CPU offered."""

import sys
from typing import Any

import numba
import numpy as np
import pytest

import stagewise as sw
from stagewise.simulation import cuda, cuda_loops, registers
from stagewise.simulation.compiled import bandit_for, player_for, stage_for
from stagewise.simulation.judge import judge

D = 3
SAFE = sw.SafeAction(features=np.zeros(D))
SETTINGS: dict[str, Any] = {"safe_action": SAFE, "threshold": 0.5, "noise": 0.1}
RAYS = sw.LinearWorld(theta=[0.6, 0.8, 0.0], mu=[0.0, 0.6, 0.8], actions=sw.Rays(np.eye(D)), noise=0.1)
FOUR = sw.RandomRays(count=4, dimension=D)
FRESH = sw.LinearWorld(theta=[0.6, 0.8, 0.0], mu=[0.0, 0.6, 0.8], actions=FOUR, noise=0.1)
ARMS = sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.3, 0.6])
SAFE_ARM = sw.SafeAction(arm=0, reward=0.1, cost=0.0)


class Hopper:
    """Stands in for a device: the compiler asks what it can do."""

    compute_capability = (9, 0)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Any:
    target = pytest.importorskip("numba.cuda")
    pytest.importorskip("numba_cuda")
    for name, module in list(sys.modules.items()):
        if name.startswith("numba") and hasattr(module, "get_current_device"):
            monkeypatch.setattr(module, "get_current_device", lambda: Hopper)
    monkeypatch.setattr(cuda, "driver", lambda: target)
    return target


def assembled(compiler: Any, play: Any, shared: tuple[Any, ...], costs: int) -> str:
    """Return the PTX of a loop for these arguments."""
    batch = (np.arange(4), np.arange(8), np.int64(0), np.int64(10))
    arguments = (*shared, *batch, *cuda.empty(8, 4, costs))
    kinds = tuple(numba.typeof(np.array(a) if isinstance(a, np.ndarray) else a) for a in arguments)
    text, _ = compiler.compile_ptx(play.py_func, kinds, cc=(9, 0))
    return str(text)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("policy", "world"),
    [
        (sw.LCLUCB(**SETTINGS), RAYS),
        (sw.ROFUL(**{**SETTINGS, "safe_action": sw.SafeAction(features=[0.1, 0.2, 0.1], reward=0.22, cost=0.2)}), RAYS),
        (sw.LinUCB(noise=0.1), RAYS),
        (sw.OPB(arms=3, safe_action=SAFE_ARM, threshold=0.3), ARMS),
    ],
    ids=["LC-LUCB", "ROFUL off the origin", "LinUCB", "OPB"],
)
@pytest.mark.parametrize("audited", [False, True])
def test_unrolled_loops_compile_without_a_device_and_keep_a_run_in_registers(
    compiler: Any, policy: Any, world: Any, audited: bool
) -> None:
    call = registers.call_for(policy, judge(policy, world), audited)
    assert call is not None
    text = assembled(compiler, call.play, call.arguments, world.costs)
    assert ".visible .entry" in text
    assert ".local" not in text, "an array of a thread's own would lie in memory"
    assert ".f64" in text


FRESH = sw.LinearWorld(
    theta=[0.6, 0.8, 0.0], mu=[0.0, 0.6, 0.8], actions=sw.RandomRays(count=4, dimension=D), noise=0.1
)
SOME = sw.LinearWorld(theta=[0.6, 0.8, 0.0], mu=[0.0, 0.6, 0.8], actions=sw.Rays(np.eye(D)).only([0, 2]), noise=0.1)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("policy", "world", "audited"),
    [
        (sw.SafeLTS(**SETTINGS), RAYS, False),
        (sw.OPLB(**SETTINGS), RAYS, True),
        (sw.LCLUCB(**SETTINGS), FRESH, True),
        (sw.LCLUCB(**SETTINGS), SOME, False),
    ],
    ids=["Safe-LTS", "OPLB, audited", "fresh rays, audited", "some rays"],
)
def test_the_general_linear_loops_compile_without_a_device(
    compiler: Any, policy: Any, world: sw.LinearWorld, audited: bool
) -> None:
    arbiter = judge(policy, world)
    assert registers.call_for(policy, arbiter) is None
    stage, player = stage_for(arbiter, world), player_for(policy, world)
    sizes = cuda_loops.sizes_on_stage(player, stage, arbiter)
    play = cuda_loops.stage_kernel(sizes, isinstance(policy, sw.OPLB), player.sampled, stage.fresh, audited)
    shared = cuda_loops.shared_on_stage(player, stage, arbiter)
    assert ".visible .entry" in assembled(compiler, play, shared, world.costs)


@pytest.mark.compiled
@pytest.mark.parametrize("audited", [False, True])
def test_the_general_loop_on_arms_compiles_without_a_device(compiler: Any, audited: bool) -> None:
    policy = sw.UCB(arms=3, safe_action=SAFE_ARM, threshold=0.3, radius="kl")
    arbiter = judge(policy, ARMS)
    bandit = bandit_for(policy, arbiter, ARMS)
    play = cuda_loops.arms_kernel(cuda_loops.sizes_for_arms(bandit, arbiter), bandit.constrained, audited)
    assert ".visible .entry" in assembled(compiler, play, cuda_loops.shared_by_arms(bandit, arbiter), ARMS.costs)


class Idle:
    """A loop that Numba sets up for its threads, and that is then not played."""

    def __init__(self) -> None:
        self.play = pytest.importorskip("numba.cuda").jit(lambda *arguments: None)

    def __getitem__(self, shape: tuple[int, int]) -> Any:
        self.play[shape]
        return lambda *arguments: None


def test_a_few_runs_are_no_reason_to_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "driver", lambda: None)
    monkeypatch.setattr(cuda, "call_for", lambda *arguments: registers.Call(Idle(), ()))
    policy = sw.LCLUCB(**SETTINGS)
    cuda.launcher(policy, judge(policy, RAYS), False)(np.arange(4), np.arange(8), 0, 10)
    with pytest.warns(Warning, match="under-utilization"):  # what others launch is their own business
        Idle()[1, cuda.THREADS]


def test_without_a_device_the_cpu_is_offered() -> None:
    try:
        from numba import cuda as target

        there = target.is_available()
    except ImportError:
        there = False
    if there:
        pytest.skip("this machine has one")
    with pytest.raises(sw.InvalidProblem, match="backend='cpu' plays the same runs"):
        sw.simulate(sw.LCLUCB(**SETTINGS), RAYS, rounds=10, runs=10, backend="cuda")


def test_what_a_thread_has_no_room_for_is_refused_and_the_cpu_offered() -> None:
    policy = sw.OPB(arms=5000, safe_action=SAFE_ARM, threshold=0.3)
    world = sw.ArmsWorld(reward=np.linspace(0.0, 1.0, 5000), cost=np.linspace(0.0, 1.0, 5000))
    arbiter = judge(policy, world)
    with pytest.raises(sw.InvalidProblem, match=r"has room for 48,000; backend='cpu' plays the same runs"):
        cuda_loops.check(cuda_loops.sizes_for_arms(bandit_for(policy, arbiter, world), arbiter))


@pytest.mark.parametrize(
    "policy",
    [
        sw.SafeLTS(**SETTINGS),
        sw.LCLUCB(**{**SETTINGS, "safe_action": sw.SafeAction(features=[0.1, 0.2, 0.1])}),
        sw.OPLB(**SETTINGS),
    ],
)
def test_only_a_known_baseline_on_rays_is_unrolled(policy: Any) -> None:
    assert registers.call_for(policy, judge(policy, RAYS)) is None


def test_where_the_world_is_not_as_declared_the_loops_that_watch_are_used() -> None:
    noisy = sw.LinearWorld(theta=[0.6, 0.8, 0.0], mu=[0.0, 0.6, 0.8], actions=RAYS.actions, noise=1.0)
    watched, blind = sw.LCLUCB(**SETTINGS), sw.LCLUCB(**SETTINGS, watch=False)
    assert registers.call_for(watched, judge(watched, noisy)) is None
    assert registers.call_for(blind, judge(blind, noisy)) is not None
