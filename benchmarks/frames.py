"""A log of a million rows and ten columns: seconds until it is learned, from a frame of each kind that is installed.

Run `python benchmarks/frames.py [--rows N]`. Kernels are compiled before the clock starts.
"""

import argparse
import importlib
import time
from typing import Any

import numpy as np

import stagewise as sw

FEATURES = [f"x{i}" for i in range(7)]
NAMES = ["nothing", "digest", "news", "offer", "reminder", "survey"]
LIMITS = {"opt_out": 0.02, "complaint": 0.005}
SAFE = {"opt_out": 0.0, "complaint": 0.0}
ARMS = sw.OPB(arms=len(NAMES), safe_action=sw.SafeAction(arm=0, reward=0.0, cost=SAFE), threshold=LIMITS, interval="kl")
ZERO = sw.SafeAction(features=np.zeros(len(FEATURES)))
POLICIES = {
    "OPB": (ARMS, {"action": "template", "names": NAMES}),
    "LC-LUCB": (sw.LCLUCB(safe_action=ZERO, threshold=LIMITS, noise=0.5), {"context": FEATURES}),
    "CAPS": (sw.SafePosteriorSampling(safe_action=ZERO, threshold=LIMITS, noise=0.5), {"context": FEATURES}),
}


def columns(rows: int) -> dict[str, Any]:
    """Return eleven columns: a template, seven features, a click, an opt-out, a complaint."""
    random = np.random.default_rng(1)
    features = random.uniform(-1, 1, (rows, len(FEATURES))) / np.sqrt(len(FEATURES))
    return {
        "complaint": random.random(rows) < 0.001,
        **{name: features[:, i] for i, name in enumerate(FEATURES)},
        "opt_out": random.random(rows) < 0.01,
        "template": np.array(NAMES, dtype=object)[random.integers(0, len(NAMES), rows)],
        "click": random.random(rows) < 0.1,
    }


def frames(rows: int) -> dict[str, Any]:
    """Return the same log in every form that can be made here."""
    log = columns(rows)
    result = {"mapping": log}
    for kind, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            result[kind] = getattr(importlib.import_module(kind), make)(log)
        except ImportError:
            print(f"{kind} is not installed")
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    for policy, settings in POLICIES.values():
        sw.Agent(policy).learn_log_frame(columns(10), reward="click", **settings)
    for kind, frame in frames(rows).items():
        for name, (policy, settings) in POLICIES.items():
            agent = sw.Agent(policy)
            started = time.perf_counter()
            agent.learn_log_frame(frame, reward="click", **settings)
            print(f"{kind:>8} {name:>8}: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
