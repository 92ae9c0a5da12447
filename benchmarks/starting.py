"""Processor time of a first decision, its learning and a first simulation: on an empty cache, then with kernels kept.

python benchmarks/starting.py
"""

import os
import subprocess
import sys
import tempfile

CODE = """
import time
a = time.process_time()
import numpy as np
import stagewise as sw
policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(10)), threshold=0.2, noise=0.1)
agent = sw.Agent(policy)
decision = agent.decide(np.eye(10))
b = time.process_time()
agent.learn(decision, reward=0.0, cost=0.0)
c = time.process_time()
world = sw.LinearWorld(reward=np.ones(10) / 4, cost=np.ones(10) / 4, actions=sw.Rays(np.eye(10)), noise=0.1)
sw.simulate(policy, world, rounds=1000)
print(f"import to first decision {b - a:.2f} s, learning {c - b:.2f} s, simulation {time.process_time() - c:.2f} s")
"""


def main() -> None:
    """Print a line for an empty cache, and three for a full one."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("empty", "kept", "kept", "kept"):
            told = {**os.environ, "STAGEWISE_CACHE": folder}
            done = subprocess.run([sys.executable, "-c", CODE], env=told, capture_output=True, text=True, check=True)
            print(f"{kind}: {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
