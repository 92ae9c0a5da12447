"""The simulated users of `stagewise serve --demo`, in a separate process, over HTTP.

Their outcomes are reported late, in any order, sometimes after the window and sometimes never; an opt-out or a
complaint is reported only if there is one. Some actions would violate a limit if everybody got them: the server has to
learn that.
"""

import heapq
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stagewise.policies.problem import Problem
from stagewise.problem.errors import StagewiseError
from stagewise.problem.signals import scale_limit, scale_outcome
from stagewise.problem.thresholds import parse_threshold
from stagewise.server.client import Client, DecisionRequest, DecisionResponse, RequestRejected

if TYPE_CHECKING:
    from stagewise.server.access_keys import AccessKeys
    from stagewise.server.decision_server import DecisionServer

USERS_PER_SECOND, BATCH_SECONDS = 100.0, 0.1
PROPOSED_SHARE = 0.9  # of the proposed action, where a problem has no reward
LOST_SHARE, NOT_SHOWN_SHARE = 0.05, 0.01  # of outcomes that are never reported, of decisions that are not carried out
SEGMENTS = ("NZ", "NZ", "NZ", "PT", "PT")
REWARD_RATES = (0.05, 0.1, 0.04)  # of all but the safe action
LIMIT_SHARES = (0.25, 0.55, 1.6)  # mean costs of all but the safe action, relative to the limit
SAFE_REWARD = 0.02


class Population:
    """The simulated users of a problem; actions have different rates of rewards and costs."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        others = [name for name in problem.action_names if name != problem.safe_name]
        self.rates = {problem.reward.name: dict(zip(others, itertools.cycle(REWARD_RATES), strict=False))}
        self.rates[problem.reward.name][problem.safe_name] = SAFE_REWARD
        for name, limit in problem.limits.items():
            below, _, threshold = parse_threshold(scale_limit(name, limit))
            allowed = 1.0 - float(threshold) if below else float(threshold)
            bad = dict(zip(others, (share * allowed for share in itertools.cycle(LIMIT_SHARES)), strict=False))
            bad[problem.safe_name] = 0.5 * allowed
            if limit.safe_bound is not None:
                declared = scale_outcome(limit, name, limit.safe_bound)
                bad[problem.safe_name] = 1.0 - declared if below else declared
            self.rates[name] = {action: 1.0 - rate if below else rate for action, rate in bad.items()}

    def user(self, number: int) -> dict[str, Any]:
        chance = random.Random(f"{self.seed} {number}")
        context: dict[str, Any] = {name: one.pick(chance.random()) for name, one in self.problem.numbers.items()}
        context |= {name: one.pick(chance.random()) for name, one in self.problem.score_columns.items()}
        context |= {name: chance.choice(one.labels) for name, one in self.problem.categories.items()}
        return {name: chance.choice(SEGMENTS) for name in self.problem.segment_columns} | context

    def outcome(self, action: str, number: int) -> dict[str, float]:
        """Return the outcome of an action for a user, in the signals' units."""
        chance, signals = random.Random(f"{self.seed} {number} outcome"), self.problem.signals.items()
        happens = {name: chance.random() < self.rates[name][action] for name, _ in signals}
        values = {name: signal.high if happens[name] else signal.low for name, signal in signals}
        return {name: values[name] for name in self.problem.reported}

    def propose(self, number: int) -> dict[str, float] | None:
        """Return what a model of the caller proposes for a user; None: the problem's own policy decides."""
        others = [name for name in self.problem.action_names if name != self.problem.safe_name]
        return {others[number % len(others)]: PROPOSED_SHARE} if self.problem.needs_proposal else None


class UserStream:
    """A stream of users with their scheduled outcomes."""

    def __init__(self, population: Population, client: Client, seed: int) -> None:
        self.population, self.client, self.number = population, client, 0
        self.random = random.Random(seed)
        self.scheduled: list[tuple[float, int, dict[str, Any]]] = []
        self._count = itertools.count()

    def step(self, users: int, now: float) -> None:
        """Request decisions for new users, and report the outcomes that are due."""
        first = self.number
        self.number += users
        requests = [
            DecisionRequest(self.population.user(number), propose=self.population.propose(number))
            for number in range(first, first + users)
        ]
        for number, decision in enumerate(self.client.decide_many(requests), first):
            if isinstance(decision, DecisionResponse) and decision.logged:
                outcome = self.population.outcome(decision.action, number)
                self.schedule_outcomes(decision.decision_id, outcome, now)
        due = []
        while self.scheduled and self.scheduled[0][0] <= now:
            due.append(heapq.heappop(self.scheduled)[2])
        if due:
            self.client.learn_many(due)

    def schedule_outcomes(self, id_: str, outcome: Mapping[str, float], now: float) -> None:
        """Schedule the reports of a decision's outcome."""
        signals = self.population.problem.signals
        if self.random.random() < NOT_SHOWN_SHARE:
            self.schedule(now + self.random.expovariate(1.0), {"decision_id": id_, "shown": False})
            return
        for i, (name, value) in enumerate(outcome.items()):
            window = signals[name].outcome_window
            delay = 2.0 if window is None else min(window.seconds / 4.0, 3600.0)
            is_silent = i > 0 and value == signals[name].low  # nobody reports that there was no complaint
            if window is not None and (is_silent or self.random.random() < LOST_SHARE):
                continue
            self.schedule(now + self.random.expovariate(1.0 / delay), {"decision_id": id_, name: value})

    def schedule(self, at: float, report: dict[str, Any]) -> None:
        heapq.heappush(self.scheduled, (float(at), next(self._count), report))

    def run(self, rate: float, stopped: Callable[[], bool]) -> None:
        """Run at this rate until stopped, or until the server rejects the key."""
        start, total = time.monotonic(), 0
        while not stopped():
            now = time.monotonic()
            expected = int(rate * (now - start))
            users = min(expected - total, int(2.0 * rate * BATCH_SECONDS) + 1)  # a busy server gets no backlog
            total = expected
            try:
                self.step(max(users, 0), now)
            except RequestRejected as error:
                if error.status in (401, 403):
                    return
            except StagewiseError:
                time.sleep(1.0)
            time.sleep(max(BATCH_SECONDS - (time.monotonic() - now), 0.0))


def start_demo_users(
    names: Sequence[str], address: str, server: "DecisionServer", keys: "AccessKeys", rate: float = USERS_PER_SECOND
) -> Callable[[], None]:
    """Start simulated users of these experiments; return the function that stops them."""
    holder = f"demo-{os.urandom(4).hex()}"
    key = keys.add(holder, "writer", "simulated users")
    processes = []
    for name in names:
        settings = {"address": address, "key": key, "experiment": name, "rate": rate}
        settings["problem"] = server.experiment(name).problem.to_dict()
        process = subprocess.Popen([sys.executable, "-m", "stagewise.cli.demo"], stdin=subprocess.PIPE, text=True)
        if process.stdin is not None:
            process.stdin.write(json.dumps(settings) + "\n")
            process.stdin.flush()
        processes.append(process)

    def stop() -> None:
        for process in processes:
            process.terminate()
            process.wait(10.0)
            if process.stdin is not None:
                process.stdin.close()

    return stop


def main() -> None:
    """Simulate the users of one experiment; its settings are the first line of standard input, whose end stops it."""
    settings = json.loads(sys.stdin.readline())
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.read()  # ends with the parent process
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    problem, seed = Problem.from_dict(settings["problem"]), int.from_bytes(os.urandom(4))
    with Client(settings["address"], settings["key"], settings["experiment"], problem.safe_name, timeout=5.0) as client:
        UserStream(Population(problem, seed), client, seed).run(settings["rate"], stopped.is_set)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl+C stops the server and its users
        main()
