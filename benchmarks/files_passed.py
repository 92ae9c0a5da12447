"""Count the files of stagewise that a call enters: one decision by hand, a simulation, one decision over HTTP.

A reader who follows a call opens these files. Kernels run interpreted here and are counted apart: compiled, they are
one call of machine code. What the server's learner does in its own thread meanwhile answers no request and does not
count; the thread that writes the decision does. Run `python benchmarks/files_passed.py [--list]`.
"""

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import stagewise as sw

ROOT = f"{Path(sw.__file__).parent}/"
KERNELS = ("engine/", "models/", "rules/")


class Trace:
    """The files of stagewise that calls enter while it is active, in all threads but the learner's."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.active = False
        sys.setprofile(self._note)
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        is_ours = self.active and event == "call" and frame.f_code.co_filename.startswith(ROOT)
        if is_ours and threading.current_thread().name != "learner":
            self.files[frame.f_code.co_filename.removeprefix(ROOT)] = None

    def __enter__(self) -> None:
        self.files.clear()
        self.active = True

    def __exit__(self, *_: object) -> None:
        self.active = False


def problem() -> sw.Problem:
    limits = {"opt_out": sw.Limit(0.02, safe_bound=0.01, model="rates")}
    return sw.Problem(
        action_names=["nothing", "offer"],
        safe_name="nothing",
        context=["age"],
        reward=sw.Reward("click"),
        limits=limits,
    )


def decide_by_problem(trace: Trace) -> None:
    agent = sw.Agent(problem(), seed=1)
    agent.learn(agent.decide({"age": 0.5}), click=True, opt_out=False)
    with trace:
        agent.decide({"age": 0.1})


def decide_by_lclucb(trace: Trace) -> None:
    safe = sw.SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0)
    agent, rays = sw.Agent(sw.LCLUCB(safe_action=safe, threshold=0.5, noise=0.1)), sw.RaySet(np.eye(2))
    agent.learn(agent.decide(rays), 0.5, 0.1)
    with trace:
        agent.decide(rays)


def simulate(trace: Trace) -> None:
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
    policy, world = sw.OPB(arms=2, safe_action=safe, threshold=0.2), sw.ArmsWorld(reward=[0.1, 0.5], cost=[0.0, 0.1])
    with trace:
        sw.simulate(policy, world, rounds=20, progress=False)


def decide_over_http(trace: Trace) -> None:
    """One request to the ASGI application, after one that starts whatever starts once."""
    from stagewise.server.access_keys import AccessKeys
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.store.sqlite import SqliteStore
    from stagewise.server.web.app import App, HttpSettings

    async def ask(app: App, key: str) -> None:
        body = json.dumps({"context": {"age": 0.1}}).encode()
        scope = {
            "type": "http", "method": "POST", "path": "/v1/demo/decisions", "query_string": b"",
            "headers": [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json"),
                        (b"content-length", str(len(body)).encode())],
            "client": ("test", 1), "scheme": "http", "root_path": "",
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, receive, send)
        assert sent[0]["status"] in (200, 201), sent

    async def serve(folder: Path) -> None:
        store = SqliteStore(folder / "store.db")
        server, keys = DecisionServer(store), AccessKeys(store)
        app = App(server, keys, HttpSettings(log=False), lambda: server.open("demo", problem(), "ada", "a benchmark"))
        _, writer, _ = keys.create_initial_keys()
        messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        replies: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        lifespan = asyncio.create_task(app({"type": "lifespan"}, messages.get, replies.put))
        await messages.put({"type": "lifespan.startup"})
        await replies.get()
        await ask(app, writer)
        with trace:
            await ask(app, writer)
        await messages.put({"type": "lifespan.shutdown"})
        await lifespan

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(Path(folder)))


CASES = {
    "Agent.decide of a Problem": decide_by_problem,
    "Agent.decide of LC-LUCB": decide_by_lclucb,
    "sw.simulate of OPB": simulate,
    "a decision over HTTP": decide_over_http,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the files")
    shows, trace = parser.parse_args().list, Trace()
    for name, play in CASES.items():
        play(trace)
        kernels = [file for file in trace.files if file.startswith(KERNELS)]
        print(f"{len(trace.files) - len(kernels):>3} files and {len(kernels):>2} of kernels: {name}")
        for file in trace.files if shows else ():
            print(f"      {file}")


if __name__ == "__main__":
    main()
