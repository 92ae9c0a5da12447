"""The GPU's loops without a GPU: they are the CPU's, they compile to PTX, and what cannot be played is refused."""

import sys
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda
from tests.problem.refusal import refused
from tests.simulation.gpu import thread

import stagewise as sw
from stagewise.engine.layout import SWITCHES
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.compiled_run import CompiledRun, LoopInputs, build_inputs
from stagewise.simulation.gpu import play_batches, registers
from stagewise.simulation.gpu import play_batches as general
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import compute_recorded_rounds, empty_trace

D, ROUNDS, RUNS, SEED = 3, 60, (0, 3), 7
SAFE = sw.SafeAction(features=np.zeros(D))
OFF = sw.SafeAction(features=[0.1, 0.2, 0.1], reward=0.22, cost=0.2)
UNKNOWN = sw.SafeAction(features=[0.1, 0.2, 0.1])
SETTINGS: dict[str, Any] = {"safe_action": SAFE, "threshold": 0.5, "noise": 0.1}
TRUTH: dict[str, Any] = {"reward": [0.6, 0.8, 0.0], "cost": [0.0, 0.6, 0.8], "noise": 0.1}
TARGETS = np.random.default_rng(3).normal(size=(5, D)) / 4.0
RAYS = sw.LinearWorld(**TRUTH, actions=sw.RaySet(np.eye(D)))
CLICKS = sw.LinearWorld(**{**TRUTH, "noise": None}, outcomes="bernoulli", actions=sw.RaySet(np.eye(D)))
SOME = sw.LinearWorld(**TRUTH, actions=sw.RaySet(np.eye(D)).only([0, 2]))
FINITE = sw.LinearWorld(**TRUTH, actions=sw.FiniteSet(TARGETS))
FRESH = sw.LinearWorld(**TRUTH, actions=sw.RandomRaySet(count=4, dimension=D))
FRESH_FINITE = sw.LinearWorld(**TRUTH, actions=sw.RandomFiniteSet(count=4, dimension=D))
NOISY = sw.LinearWorld(**{**TRUTH, "noise": 1.0}, actions=sw.RaySet(np.eye(D)))
LIMITS = {"wear": 0.3, "yield": sw.AtLeast(-0.2)}
TWO = sw.LinearWorld(
    reward=[0.6, 0.8, 0.0], cost=[[0.0, 0.6, 0.8], [0.6, 0.0, 0.0]], actions=sw.RaySet(TARGETS), noise=0.1
)
ARMS = sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.3, 0.6])
NORMAL = sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.3, 0.6], outcomes="gaussian", noise=0.2)
LOGGED = sw.FiniteSetWorld(features=TARGETS, reward=[0.1, 0.3, 0.5, 0.2, 0.4], cost=[0.0, 0.2, 0.4, 0.6, 0.1])
ROW = sw.SafeAction(features=TARGETS[0], reward=0.1, cost=0.0)
ARM = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
PULLED: dict[str, Any] = {"arms": 3, "safe_action": ARM, "threshold": 0.3}
CURVED: dict[str, Any] = {"safe_action": ROW, "threshold": 0.3, "noise": 0.1, "norm_bound": 1.0}
UNROLLED = {
    "LC-LUCB": (sw.LCLUCB(**SETTINGS), RAYS),
    "LC-LUCB, paper's radius": (sw.LCLUCB(**SETTINGS, radius="paper", mean_cost_bound=None), RAYS),
    "LC-LUCB, two limits": (sw.LCLUCB(**{**SETTINGS, "threshold": LIMITS}, ridge=0.5, radius="logdet"), TWO),
    "ROFUL off the origin": (sw.ROFUL(**{**SETTINGS, "safe_action": OFF}), RAYS),
    "LinUCB": (sw.LinUCB(noise=0.1), RAYS),
    "blind LC-LUCB": (sw.LCLUCB(**SETTINGS, check_assumptions=False), NOISY),
    "CAPS": (sw.SafePosteriorSampling(**SETTINGS), RAYS),
    "CAPS, paper's radius": (sw.SafePosteriorSampling(**SETTINGS, radius="paper", posterior_scale=0.3), RAYS),
    "CAPS, two limits": (
        sw.SafePosteriorSampling(**{**SETTINGS, "threshold": LIMITS}, ridge=0.5, max_regret_ratio=1.5),
        TWO,
    ),
    "CAPS off the origin": (sw.SafePosteriorSampling(**{**SETTINGS, "safe_action": OFF}), RAYS),
    "OPB": (sw.OPB(**PULLED, interval="hoeffding"), ARMS),
    "OPB, normal": (sw.OPB(**PULLED, noise=0.2, horizon=100), NORMAL),
}
GENERAL = {
    "LC-LUCB, unknown baseline": (sw.LCLUCB(**{**SETTINGS, "safe_action": UNKNOWN}), RAYS),
    "CAPS, unknown baseline": (sw.SafePosteriorSampling(**{**SETTINGS, "safe_action": UNKNOWN}), RAYS),
    "CAPS, outcomes in [0, 1]": (sw.SafePosteriorSampling(**SETTINGS, bounded_outcomes=True), CLICKS),
    "LC-LUCB, some rays": (sw.LCLUCB(**SETTINGS), SOME),
    "LC-LUCB, fresh rays": (sw.LCLUCB(**SETTINGS), FRESH),
    "LC-LUCB that is told too little noise": (sw.LCLUCB(**SETTINGS), NOISY),
    "Safe-LTS": (sw.SafeLTS(**SETTINGS), RAYS),
    "DOSLB": (sw.DOSLB(**SETTINGS), RAYS),
    "OPLB": (sw.OPLB(**SETTINGS), FINITE),
    "OPLB, two limits": (sw.OPLB(**{**SETTINGS, "threshold": LIMITS}), TWO),
    "OPLB, fresh": (sw.OPLB(**{**SETTINGS, "safe_action": OFF}, optimism="directional"), FRESH_FINITE),
    "OPB, kl": (sw.OPB(**PULLED, interval="kl"), ARMS),
    "UCB, kl": (sw.UCB(arms=3, interval="kl"), ARMS),
    "UCB, rates": (sw.UCB(arms=3, interval="rates"), ARMS),
    "KernelOPLB": (sw.KernelOPLB(kernel=sw.RBF(lengthscale=0.5), **CURVED), LOGGED),
    "AlwaysSafe": (sw.AlwaysSafe(safe_action=SAFE, threshold=0.5), RAYS),
    "AlwaysSafe among arms": (sw.AlwaysSafe(safe_action=ARM, threshold=0.5), ARMS),
}


def inputs_of(policy: Any, world: Any, audited: bool = True) -> LoopInputs:
    return build_inputs(policy, build_oracle(policy, world), audited)


def call_of(policy: Any, world: Any, audited: bool = True) -> registers.Call | None:
    return registers.build_call(policy, build_oracle(policy, world), inputs_of(policy, world, audited))


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_batches, "get_cuda", lambda: thread.Device)
    monkeypatch.setattr(play_batches, "configure_kernel", thread.spread)


def both(policy: Any, world: Any, audited: bool) -> tuple[list[Any], list[Any]]:
    """Return what is kept of some runs, by the GPU's loop on a processor and by the CPU's."""
    arbiter, m, kept = build_oracle(policy, world), world.costs, []
    for run in RUNS:
        trace = empty_trace(compute_recorded_rounds(ROUNDS, 20), m, audited)
        CompiledRun(policy, arbiter, trace, SEED, run).play(0, ROUNDS)
        kept.append(trace[1:])
    there = play_batches.play(policy, arbiter, ROUNDS, 20, SEED, np.array(RUNS), audited)
    here = [np.stack(column) for column in zip(*kept, strict=True)]
    chosen = slice(None) if audited else slice(-1)
    return list(there[1:])[chosen], here[chosen]


@pytest.mark.long
@pytest.mark.parametrize("audited", [False, True])
@pytest.mark.parametrize("name", [*GENERAL, "LC-LUCB", "OPB"])
def test_the_general_loop_is_the_cpus_to_the_bit(
    name: str, audited: bool, processor: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play_batches, "build_call", lambda *arguments: None)
    for device, host in zip(*both(*{**UNROLLED, **GENERAL}[name], audited), strict=True):
        np.testing.assert_array_equal(device, host)


@pytest.mark.parametrize("audited", [False, True])
@pytest.mark.parametrize("name", UNROLLED)
def test_an_unrolled_loop_is_the_cpus_but_for_rounding(name: str, audited: bool, processor: None) -> None:
    assert call_of(*UNROLLED[name]) is not None
    device, host = both(*UNROLLED[name], audited)
    for one, other in zip(device[:5], host[:5], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(device[5][:, 2], host[5][:, 2])  # violations
    for one, other in zip(device[6:], host[6:], strict=True):
        np.testing.assert_array_equal(one, other)  # the audit


@pytest.mark.parametrize("name", GENERAL)
def test_only_a_known_baseline_and_what_is_as_declared_are_unrolled(name: str) -> None:
    assert call_of(*GENERAL[name]) is None


def test_a_switch_that_they_are_not_written_for_is_left_to_the_general_loop() -> None:
    policy, world = UNROLLED["LC-LUCB"]
    inputs = inputs_of(policy, world)
    layout = inputs.layout.copy()
    layout[SWITCHES] |= 2**20
    assert registers.build_call(policy, build_oracle(policy, world), inputs) is not None
    assert registers.build_call(policy, build_oracle(policy, world), inputs._replace(layout=layout)) is None


def test_an_audit_counts_what_the_safe_arms_interval_missed(processor: None) -> None:
    """The unrolled loop knows the safe arm's means and needs no interval of it; the CPU's audit counts it."""
    told = sw.OPB(**{**PULLED, "threshold": 0.01}, noise=1e-4, check_assumptions=False)
    device, host = both(told, NORMAL, True)
    assert call_of(told, NORMAL) is not None
    assert np.all(host[6][:, 3:] > 0)
    np.testing.assert_array_equal(device[6], host[6])


class Hopper:
    """Stands in for a device: the compiler asks what it can do."""

    compute_capability = (9, 0)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, module in list(sys.modules.items()):
        if name.startswith("numba") and hasattr(module, "get_current_device"):
            monkeypatch.setattr(module, "get_current_device", lambda: Hopper)
    return cuda


def assembled(compiler: Any, loop: Any, shared: tuple[Any, ...], costs: int) -> str:
    """Return the PTX of a loop for these arguments."""
    batch = (np.arange(4), np.arange(8), np.int64(0), np.int64(10))
    arguments = (*shared, *batch, *empty_trace(np.arange(4), max(costs, 1), True, (8,))[1:])
    kinds = tuple(numba.typeof(np.array(a) if isinstance(a, np.ndarray) else a) for a in arguments)
    text, _ = compiler.compile_ptx(loop.py_func, kinds, cc=(9, 0))
    return str(text)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "audited"),
    [("LC-LUCB", False), ("ROFUL off the origin", True), ("LinUCB", True), ("OPB", True), ("OPB", False)],
)
def test_unrolled_loops_compile_and_keep_a_run_in_registers(compiler: Any, name: str, audited: bool) -> None:
    policy, world = UNROLLED[name]
    call = call_of(policy, world, audited)
    assert call is not None
    text = assembled(compiler, *call, world.costs)
    assert ".visible .entry" in text
    assert ".local" not in text, "an array of a thread's own would lie in memory"
    assert ".f64" in text


@pytest.mark.compiled
@pytest.mark.parametrize(
    "name",
    [
        "UCB, kl",  # the loop of every interval: they differ in numbers
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("Safe-LTS", "LC-LUCB, fresh rays", "KernelOPLB", "AlwaysSafe")
        ),
    ],
)
def test_the_general_loop_compiles(compiler: Any, name: str) -> None:
    policy, world = GENERAL[name]
    inputs = inputs_of(policy, world)
    loop = general.build_kernel(inputs.round_spec, inputs.loop, general.get_sizes(inputs))
    assert ".visible .entry" in assembled(compiler, loop, general.get_shared_arrays(inputs), world.costs)


class Idle:
    """A loop that Numba sets up for its threads, and that is then not played."""

    def __init__(self) -> None:
        self.play = cuda.jit(lambda *arguments: None)

    def __getitem__(self, shape: tuple[int, int]) -> Any:
        self.play[shape]
        return lambda *arguments: None


def test_a_few_runs_are_no_reason_to_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_batches, "get_cuda", lambda: thread.Device)
    monkeypatch.setattr(play_batches, "build_call", lambda *arguments: registers.Call(Idle(), ()))
    policy = sw.LCLUCB(**SETTINGS)
    play_batches.play(policy, build_oracle(policy, RAYS), 10, 4, 0, np.arange(8))
    with pytest.warns(Warning, match="under-utilization"):  # what others launch is their own business
        Idle()[1, play_batches.THREADS]


def test_without_a_device_the_cpu_is_offered() -> None:
    if cuda.is_available():
        pytest.skip("this machine has one")
    with refused(sw.InvalidProblem, ErrorCode.BACKEND_UNAVAILABLE):
        sw.simulate(sw.LCLUCB(**SETTINGS), RAYS, rounds=10, runs=10, backend="cuda")


def test_what_a_thread_has_no_room_for_is_refused_and_the_cpu_offered(processor: None) -> None:
    policy = sw.OPB(arms=5000, safe_action=ARM, threshold=0.3, interval="hoeffding")
    world = sw.ArmsWorld(reward=np.linspace(0.1, 1.0, 5000), cost=np.linspace(0.0, 1.0, 5000))
    with refused(sw.InvalidProblem, ErrorCode.TOO_LARGE):
        play_batches.play(policy, build_oracle(policy, world), 10, 4, 0, np.arange(8))


def test_what_needs_a_solver_is_refused_and_python_offered(processor: None) -> None:
    policy, world = sw.LCLUCB(**SETTINGS), sw.LinearWorld(**TRUTH, actions=sw.BallSet(1.0))
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED_BACKEND):
        play_batches.play(policy, build_oracle(policy, world), 10, 4, 0, np.arange(8))
