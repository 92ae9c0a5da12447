"""Time of a first decision, its learning and a first simulation: on an empty cache, then with kernels kept.

Interpreted first, then compiled first. Then the longest round while machine code takes over.

python benchmarks/starting.py
"""

import os
import subprocess
import sys
import tempfile

CODE = """
import time
a, wall = time.process_time(), time.perf_counter()
import numpy as np
import stagewise as sw
policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(10)), threshold=0.2, noise=0.1)
agent = sw.Agent(policy)
decision = agent.decide(np.eye(10))
b, seen = time.process_time(), time.perf_counter() - wall
agent.learn(decision, reward=0.0, cost=0.0)
c = time.process_time()
world = sw.LinearWorld(reward=np.ones(10) / 4, cost=np.ones(10) / 4, actions=sw.RaySet(np.eye(10)), noise=0.1)
sw.simulate(policy, world, rounds=1000)
print(f"import to first decision {b - a:.2f} s ({seen:.2f} s wall), learning {c - b:.2f} s,", end=" ")
print(f"simulation {time.process_time() - c:.2f} s")
"""


SWAP = """
import time
import numpy as np
import stagewise as sw
from stagewise.engine.background import COMPILER

problem = sw.Problem(
    action_names=["nothing", "digest", "offer"], safe_name="nothing", context=["age", "opens"],
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")},
)
agent, random, times, last = sw.Agent(problem, seed=1), np.random.default_rng(0), [], 500
begun = time.perf_counter()
while last:
    start = time.perf_counter()
    decision = agent.decide({"age": random.uniform(-1.0, 1.0), "opens": random.uniform(-1.0, 1.0)})
    sent = decision.action != "nothing"
    agent.learn(decision.id, click=random.random() < 0.1 * sent, opt_out=random.random() < 0.01 * sent)
    times.append(time.perf_counter() - start)
    last -= COMPILER.is_idle
    time.sleep(PAUSE)
taken = 1e6 * np.array(times)
print(f"a Problem, {'a round every 2 ms' if PAUSE else 'rounds without a pause'}:", end=" ")
print(f"interpreted {np.median(taken[:500]):.0f} us, after {time.perf_counter() - begun:.0f} s compiled", end=" ")
print(f"{np.median(taken[-400:]):.0f} us, longest round {taken.max() / 1e3:.0f} ms")
"""


def main() -> None:
    """Print a line for an empty cache and two for a full one, in either mode, then one for each pace of rounds."""
    for mode in ("background", "always"):
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("empty", "kept", "kept"):
                print(f"{mode}, {kind}: {run(CODE, folder, mode)}", flush=True)
    for pause in ("0.0", "0.002"):
        with tempfile.TemporaryDirectory() as folder:
            print(run(SWAP.replace("PAUSE", pause), folder, "background"), flush=True)


def run(code: str, folder: str, mode: str) -> str:
    """Return what a process of its own prints."""
    settings = {**os.environ, "STAGEWISE_CACHE": folder, "STAGEWISE_COMPILE": mode}
    return subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
