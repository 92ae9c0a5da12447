"""Compile the kernels of a problem into the cache, by a few decisions: python warm.py problem.toml"""

import sys
import time
import tomllib
from pathlib import Path

import stagewise as sw


def main(path: str) -> None:
    """Decide and learn for one user, alone and in a table."""
    problem = sw.Problem.from_dict(tomllib.loads(Path(path).read_text()))
    user = dict.fromkeys(problem.context_names, "none")
    user |= {name: column.ends[0] for name, column in problem.numbers.items()}
    user |= {name: column.labels[0] for name, column in problem.categories.items()}
    agent, now = sw.Agent(problem, seed=1), time.time()  # one time for all: compiling takes longer than some windows
    rewards = {} if problem.reward is None else {"reward": 0.0}
    agent.learn(agent.decide(user, now=now), **rewards, cost=dict.fromkeys(problem.limits, 0.0), now=now)
    agent.decide_frame({"id": ["a", "b"], **{name: [value] * 2 for name, value in user.items()}}, id="id", now=now)
    print(f"compiled the kernels of {path}")


if __name__ == "__main__":
    main(sys.argv[1])
