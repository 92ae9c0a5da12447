"""Rounds a second on one GPU: the unrolled loops, the general ones, JAX's vmap and scan, and one CPU core beside them.

python benchmarks/gpu.py            (on a machine with a CUDA device; stagewise[cuda], and jax for the witness)
python benchmarks/gpu.py --registers 168 --only LC-LUCB    (at most so many registers a thread; the rows so named)
python benchmarks/gpu.py --audit --only LC-LUCB            (every interval compared with the truth)
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.simulation.compiled_run import build_inputs
from stagewise.simulation.gpu import play_batches as general
from stagewise.simulation.gpu import registers
from stagewise.simulation.oracle import build_oracle
from stagewise_reproduction.instances import at_zero, shifted

warnings.filterwarnings("ignore")
RUNS = 2**18
WORLD = shifted(10)
SETTINGS: dict[str, Any] = {"safe_action": at_zero(10), "threshold": 0.5, "noise": 1.0}
FRESH = sw.LinearWorld(
    reward=WORLD.parameters[0], cost=WORLD.parameters[1:], actions=sw.RandomRaySet(count=10, dimension=10), noise=1.0
)
ARMS = sw.ArmsWorld(reward=np.linspace(0.0, 0.9, 10), cost=np.linspace(0.0, 0.9, 10) ** 2)
SAFE_ARM = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
LOGGED = sw.FiniteSetWorld(features=np.linspace(0.0, 1.0, 10)[:, None], reward=ARMS.table[0], cost=ARMS.table[1])
CURVED: dict[str, Any] = {"threshold": 0.3, "noise": 0.1, "norm_bound": 1.0}
CURVED["safe_action"] = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)
CASES: dict[str, tuple[Any, Any, int]] = {
    "LC-LUCB, 10 fixed rays": (sw.LCLUCB(**SETTINGS), WORLD, 100_000),
    "ROFUL, 10 fixed rays": (sw.ROFUL(**SETTINGS), WORLD, 100_000),
    "LinUCB, 10 fixed rays": (sw.LinUCB(**SETTINGS), WORLD, 100_000),
    "OPB, K = 10": (sw.OPB(arms=10, safe_action=SAFE_ARM, threshold=0.3, interval="hoeffding"), ARMS, 100_000),
    "Safe-LTS, 10 fixed rays": (sw.SafeLTS(**SETTINGS), WORLD, 1_000),
    "OPLB, 10 fixed actions": (sw.OPLB(**SETTINGS), WORLD, 1_000),
    "CAPS, 10 fixed rays": (sw.SafePosteriorSampling(**SETTINGS), WORLD, 20_000),
    "CAPS, 10 fixed actions": (sw.SafePosteriorSampling(**SETTINGS, mixtures=True), WORLD, 1_000),
    "LC-LUCB, 10 fresh rays": (sw.LCLUCB(**SETTINGS), FRESH, 300),
    "kernel OPLB, 10 fixed actions": (sw.KernelOPLB(kernel=sw.RBF(lengthscale=0.3), **CURVED), LOGGED, 1_000),
}


def asked() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Rounds a second on one GPU.")
    parser.add_argument("--registers", type=int, help="at most so many a thread")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--audit", action="store_true", help="compare every interval with the truth")
    return parser.parse_known_args()[0]


ASKED = asked()


def quickest(play: Callable[[], Any], times: int = 3) -> float:
    """Return the least seconds of several calls."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        play()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def on(backend: str, policy: Any, world: Any, rounds: int, runs: int) -> Callable[[], Any]:
    """Return a call that simulates."""
    settings: dict[str, Any] = {"rounds": rounds, "runs": runs, "seed": 1, "record_points": 1, "progress": False}
    settings["audit"] = ASKED.audit
    return lambda: sw.simulate(policy, world, backend=backend, **settings)


def measured(name: str) -> str:
    """Return one row: rounds a second on the device and on one core, registers, compiling, difference in regret."""
    policy, world, rounds = CASES[name]
    compiling = quickest(on("cuda", policy, world, 10, 256), 1)
    rate = RUNS * rounds / quickest(on("cuda", policy, world, rounds, RUNS))
    on("cpu", policy, world, 10, 1)()
    core = rounds / quickest(on("cpu", policy, world, rounds, 1))
    one, other = (on(backend, policy, world, rounds, 4)().regret[:, -1] for backend in ("cuda", "cpu"))
    arbiter = build_oracle(policy, world)
    inputs = build_inputs(policy, arbiter, ASKED.audit)
    call = registers.build_call(policy, arbiter, inputs)
    loop = call.play if call else general.build_kernel(inputs.round_spec, inputs.loop, general.get_sizes(inputs))
    used = ", ".join(map(str, loop.get_regs_per_thread().values()))
    difference = float(np.max(np.abs(one - other)))
    return f"| {name} | {rate:.3g} | {core:.3g} | {rate / core:,.0f} | {used} | {compiling:.0f} | {difference:.1g} |"


def jax_rounds(runs: int, rounds: int) -> Callable[[], Any]:
    """Return LC-LUCB on the fixed rays as JAX's vmap over runs and scan over rounds, float64, with JAX's own draws."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    targets, threshold, confidence = jnp.array(WORLD.actions.features), 0.5, float(np.log(2 / 0.05))
    truth = jnp.array(WORLD.parameters) @ targets.T
    lift = 2.0 / threshold

    def one_round(carry: Any, t: Any) -> Any:
        gram, fits, log_det, key, regret = carry
        width = jnp.sqrt(jnp.diag(gram))
        radius = jnp.sqrt(log_det + 2.0 * confidence + 1.0)
        costly = jnp.minimum(fits[1] + radius * width, 1.0)
        steps = jnp.where(costly <= threshold, 1.0, threshold / costly)
        ray = jnp.argmax(steps * (fits[0] + (1.0 + lift) * radius * width))
        step, column = steps[ray], gram[:, ray]
        observed = step * truth[:, ray] + jax.random.normal(jax.random.fold_in(key, t), (2,))
        deviation = 1.0 + step * step * column[ray]
        fits = fits + jnp.outer((observed - step * fits[:, ray]) * step / deviation, column)
        gram = gram - step * step / deviation * jnp.outer(column, column)
        return (gram, fits, log_det + jnp.log(deviation), key, regret - step * truth[0, ray]), None

    def one_run(key: Any) -> Any:
        start = (targets @ targets.T, jnp.zeros((2, 10)), 0.0, key, 0.0)
        return jax.lax.scan(one_round, start, jnp.arange(rounds))[0][4]

    play, keys = jax.jit(jax.vmap(one_run)), jax.random.split(jax.random.key(0), runs)
    play(keys).block_until_ready()
    return lambda: play(keys).block_until_ready()


def main() -> None:
    """Print the table."""
    if ASKED.registers:
        registers.RAY_REGISTERS = registers.ARM_REGISTERS = general.RAY_REGISTERS = general.MIXTURE_REGISTERS = (
            ASKED.registers
        )
    print("| problem | rounds/s, GPU | rounds/s, one core | ratio | registers | compiling, s | regret apart |")
    print("|---|---|---|---|---|---|---|")
    for name in CASES:
        if ASKED.only in name:
            print(measured(name), flush=True)
    if ASKED.only:
        return
    try:
        rate = RUNS * 1_000 / quickest(jax_rounds(RUNS, 1_000))
        print(f"| LC-LUCB, 10 fixed rays, JAX vmap and scan | {rate:.3g} | | | | | |")
    except ImportError:
        print("jax is not installed: no witness")


if __name__ == "__main__":
    main()
