"""The simulated users of `stagewise serve --demo`, in a process of their own: they ask by HTTP, and answer or not.

What they do is told late, in any order, sometimes after its window, and sometimes never; an opt-out or a complaint is
told only where there is one. Some actions break a limit if they are served to everybody: the desk is to find out.
"""

import heapq
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.policies.problem import Problem
from stagewise.problem.declared import scaled
from stagewise.problem.errors import StagewiseError
from stagewise.problem.plain_limits import scaled_limit
from stagewise.problem.thresholds import taken_apart
from stagewise.records.draw import Draw
from stagewise.service.client import Decision, DeskClient, DeskRefused
from stagewise.worlds.context import ContextWorld

if TYPE_CHECKING:
    from stagewise.service.desk import Desk
    from stagewise.service.keys import Keys

RATE, TURN = 100.0, 0.1  # users a second, seconds between two batches of them
LOST, UNSEEN = 0.05, 0.01  # shares: of what is never told, of decisions that were not carried out
SEGMENTS = {"NZ": 0.6, "PT": 0.4}
EARNED = ((0.03, 0.05), (0.05, 0.11), (0.03, 0.03))  # by action but the safe one: for anybody, and by the last number
COSTLY = (0.25, 0.55, 1.6)  # and how much of a limit it takes
SAFE = 0.02


class Population:
    """The users of a problem: each action earns and costs something else.

    >>> from stagewise.problem.declared import Limit, Reward
    >>> told = {"reward": Reward("click"), "limits": {"opt_out": Limit(0.02, safe=0.0)}}
    >>> users = Population(Problem(actions=["nothing", "offer"], safe="nothing", context=["age"], **told), seed=1)
    >>> [list(users.user(0)[0]), users.outcome(1, 0)]
    [['age'], {'click': 0.0, 'opt_out': 0.0}]
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        home, numbers = problem.place_of(problem.safe), 1 + len(problem.context)
        others = [place for place in range(len(problem.actions)) if place != home]
        reward = np.zeros((len(problem.actions), numbers))
        cost = np.zeros((len(problem.limits), len(problem.actions), numbers))
        reward[home, 0] = SAFE
        for place, (base, slope) in zip(others, itertools.cycle(EARNED), strict=False):
            reward[place, 0] = base
            reward[place, -1] += slope
        for row, (name, limit) in zip(cost, problem.limits.items(), strict=True):
            below, _, threshold = taken_apart(scaled_limit(name, limit))
            room = 1.0 - float(threshold) if below else float(threshold)
            known = 0.5 * room if limit.safe is None else scaled(limit, name, limit.safe)
            row[home, 0] = 1.0 - known if below and limit.safe is not None else known
            for place, part in zip(others, itertools.cycle(COSTLY), strict=False):
                row[place, 0] = part * room
            row[:, 0] = 1.0 - row[:, 0] if below else row[:, 0]
        divided = len(problem.divisions) > 0
        self.world = ContextWorld(
            reward=reward,
            cost=cost,
            safe=home,
            features="plain",
            segments=list(SEGMENTS.values()) if divided else None,
            offsets=np.zeros((1 + len(cost), len(reward), len(SEGMENTS))) if divided else None,
        )

    def user(self, number: int) -> tuple[dict[str, Any], Any]:
        """Return what is known of a user, by name and as the world knows it."""
        features = self.world.actions_in(Draw(seed=self.seed, round=number)).features
        row = features[0]
        told: dict[str, Any] = {
            name: round(low + (high - low) * float(u), 3)
            for (name, (low, high)), u in zip(self.problem.ranges, row[2:], strict=False)
        }
        told |= {name: list(SEGMENTS)[int(row[-1])] for name in self.problem.divisions}
        return told, features

    def outcome(self, action: int, number: int) -> dict[str, float]:
        """Return what a user does with an action, in the signals' own units."""
        draw = Draw(seed=self.seed, round=number)
        seen = self.world.outcome_of(action, self.user(number)[1][action], draw)
        told = zip(self.problem.signals.items(), [seen.reward, *np.asarray(seen.cost).tolist()], strict=True)
        return {name: signal.low + (signal.high - signal.low) * float(value) for (name, signal), value in told}


class Stream:
    """Users who come one after the other, and what is still to be told of them."""

    def __init__(self, population: Population, client: DeskClient, seed: int) -> None:
        self.population, self.client, self.number = population, client, 0
        self.chance = np.random.default_rng(seed)
        self.due: list[tuple[float, int, dict[str, Any]]] = []
        self._count = itertools.count()

    def turn(self, users: int, now: float) -> None:
        """Let so many users come, and tell what is due."""
        problem, first = self.population.problem, self.number
        self.number += users
        contexts = [self.population.user(first + i)[0] for i in range(users)]
        for number, decision in enumerate(self.client.decide_all(contexts), first):
            if isinstance(decision, Decision) and decision.logged:
                done = self.population.outcome(problem.place_of(decision.action), number)
                self.expect(decision.decision_id, done, now)
        told = []
        while self.due and self.due[0][0] <= now:
            told.append(heapq.heappop(self.due)[2])
        if told:
            self.client.learn_all(told)

    def expect(self, id_: str, done: Mapping[str, float], now: float) -> None:
        """Note what will be told of a decision, and when."""
        signals = self.population.problem.signals
        if self.chance.random() < UNSEEN:
            self.later(now + self.chance.exponential(1.0), {"decision_id": id_, "shown": False})
            return
        for place, (name, value) in enumerate(done.items()):
            waits = signals[name].waits
            typical = 2.0 if waits is None else min(waits.seconds / 4.0, 3600.0)
            silent = place > 0 and value == signals[name].low  # nobody tells that he did not complain
            if waits is not None and (silent or self.chance.random() < LOST):
                continue
            self.later(now + self.chance.exponential(typical), {"decision_id": id_, name: value})

    def later(self, when: float, told: dict[str, Any]) -> None:
        """Put something off."""
        heapq.heappush(self.due, (float(when), next(self._count), told))

    def run(self, rate: float, stopped: Callable[[], bool]) -> None:
        """Let users come at this rate until somebody says so, or the desk refuses the key."""
        begun, came = time.monotonic(), 0
        while not stopped():
            now = time.monotonic()
            wanted = min(int(rate * (now - begun)) - came, int(2.0 * rate * TURN) + 1)  # a busy desk gets no backlog
            came = int(rate * (now - begun))
            try:
                self.turn(max(wanted, 0), now)
            except DeskRefused as error:
                if error.status in (401, 403):
                    return
            except StagewiseError:
                time.sleep(1.0)
            time.sleep(max(TURN - (time.monotonic() - now), 0.0))


def begin(names: Sequence[str], address: str, desk: "Desk", keys: "Keys", rate: float = RATE) -> Callable[[], None]:
    """Let simulated users come to these experiments; return what stops them."""
    holder = f"demo-{os.urandom(4).hex()}"
    key = keys.add(holder, "writer", "simulated users")
    running = []
    for name in names:
        told = {"address": address, "key": key, "experiment": name, "rate": rate}
        told["problem"] = desk.experiment(name).problem.plain()
        one = subprocess.Popen([sys.executable, "-m", "stagewise.cli.demo"], stdin=subprocess.PIPE, text=True)
        if one.stdin is not None:
            one.stdin.write(json.dumps(told) + "\n")
            one.stdin.flush()
        running.append(one)

    def stop() -> None:
        for one in running:
            one.terminate()
            one.wait(10.0)
            if one.stdin is not None:
                one.stdin.close()

    return stop


def main() -> None:
    """Be the users of one experiment, as the first line of standard input says, until it ends."""
    told = json.loads(sys.stdin.readline())
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()  # ends with the process that started this one
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    problem, seed = Problem.from_plain(told["problem"]), int.from_bytes(os.urandom(4))
    with DeskClient(told["address"], told["key"], told["experiment"], problem.safe, timeout=5.0) as client:
        Stream(Population(problem, seed), client, seed).run(told["rate"], over.is_set)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl+C stops the desk, and these with it
        main()
