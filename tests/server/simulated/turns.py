"""Threads that take turns: one runs at a time, and a seed says whose turn it is.

A thread gives its turn up before each statement of PostgreSQL, and while PostgreSQL lets it wait for a lock. So the
order of all statements is the seed's, whatever the machine does beside.
"""

import random
import threading
from collections.abc import Callable
from typing import Any

import psycopg

IS_BLOCKED = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
TERMINATE = "SELECT pg_terminate_backend(%s, 5000)"
LOOK_INTERVAL = 0.01  # seconds after which a statement may be one that waits for a lock
HELD, HOLD = 0.02, 80  # the chance, a turn, that a player is held up, and for how many turns

Connect = psycopg.Connection.connect


class Player:
    """A thread that takes turns."""

    def __init__(self, play: Callable[[], None]) -> None:
        self.go, self.arrived = threading.Semaphore(0), threading.Event()
        self.process_id = 0  # of the backend that it talks to
        self.is_over = False
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(play,), daemon=True)

    def _run(self, play: Callable[[], None]) -> None:
        self.go.acquire()
        try:
            play()
        except BaseException as error:
            self.error = error
        self.is_over = True
        self.arrived.set()


class Turns:
    """Whose turn it is.

    Attributes:
        step: How many turns there were; the clock of the players.
    """

    def __init__(self, rng: random.Random, address: str) -> None:
        self.rng, self.step = rng, 0
        self.monitor: psycopg.Connection[Any] = Connect(address, autocommit=True)
        self.players: dict[int, Player] = {}

    def play(self, plays: list[Callable[[], None]]) -> None:
        """Let players take turns until all are over."""
        ready = [Player(play) for play in plays]
        blocked, held, until = list[Player](), None, 0
        for player in ready:
            player.thread.start()
            self.players[player.thread.ident or 0] = player
        while ready or blocked:
            for player in list(blocked):  # a lock that was released is given in PostgreSQL's own order
                if self._wait(player, is_last=not ready and player is blocked[-1]):
                    blocked.remove(player)
                    ready += [] if player.is_over else [player]
            if not ready:
                continue
            self.step += 1
            if self.rng.random() < HELD and self.step > until:
                held, until = self.rng.choice(ready), self.step + HOLD
            others = [one for one in ready if one is not held or self.step > until]
            player = self.rng.choice(others or ready)
            player.arrived.clear()
            player.go.release()
            if not self._wait(player):
                ready.remove(player)
                blocked.append(player)
            elif player.is_over:
                ready.remove(player)
        for player in self.players.values():
            player.thread.join()
            if player.error is not None:
                raise player.error
        self.players.clear()

    def _wait(self, player: Player, *, is_last: bool = False) -> bool:
        """Wait until a player gives its turn up; False: it waits for a lock. `is_last`: PostgreSQL ends a deadlock."""
        while not player.arrived.wait(1.0 if is_last else LOOK_INTERVAL):
            ((is_blocked,),) = self.monitor.execute(IS_BLOCKED, (player.process_id,)).fetchall()
            if is_blocked and not player.arrived.is_set():
                return False
        return True

    def pause(self, process_id: int) -> None:
        """Give the turn up, before a statement for a backend."""
        player = self.players.get(threading.get_ident())
        if player is not None:
            player.process_id = process_id
            player.arrived.set()
            player.go.acquire()

    def terminate(self, process_id: int) -> None:
        """End a backend, and return when it is gone."""
        self.monitor.execute(TERMINATE, (process_id,))

    def close(self) -> None:
        """Forget the monitor."""
        self.monitor.close()
