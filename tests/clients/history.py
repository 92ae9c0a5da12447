"""A visitor of flags, and what its history must agree with.

python -m tests.clients.history URL KEY COUNT OUT evaluates a flag for many users, as
`clients/typescript/test/history.mjs` does, and writes what it was told, one JSON object a line.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.track import TrackingEventDetails

from stagewise.server.client import UNLOGGED_PREFIX
from stagewise.server.openfeature import StagewiseProvider
from stagewise.server.store.migrate import open_store

BATCH, TIMEOUT, PAUSE = 20, 2.0, 0.5  # seconds; a pause after a visit that the server did not answer


def visit(number: int) -> str:
    """Evaluate the flag for one user, report the outcome, and return both as JSON."""
    context = EvaluationContext(f"user-{number}", {"age": 20 + number % 60, "service": "web"})
    flags = api.get_client()
    details = flags.get_string_details("demo", "nothing", context)
    signals: dict[str, Any] = {"click": int(number % 3 == 0), "opt_out": int(number % 50 == 0)}
    flags.track("demo", context, TrackingEventDetails(attributes=signals))
    if not details.flag_metadata["logged"]:
        time.sleep(PAUSE)
    told = {"value": details.value, "variant": details.variant, "reason": details.reason, "signals": signals}
    return json.dumps({"user": context.targeting_key, **told, "metadata": dict(details.flag_metadata)})


def run_visits(url: str, key: str, count: int, out: Path) -> None:
    """Visit as so many users, twenty at a time, and go on until the server answers again."""
    api.set_provider_and_wait(StagewiseProvider(url, key, {"demo": "nothing"}, timeout=TIMEOUT))
    with ThreadPoolExecutor(20) as pool, out.open("w", buffering=1) as history:
        first, lines = 0, list[str]()
        while first < count or any(UNLOGGED_PREFIX in line for line in lines):
            lines = list(pool.map(visit, range(first, first + BATCH)))
            history.writelines(f"{line}\n" for line in lines)
            first += BATCH
    api.shutdown()


def check_history(history: list[dict[str, Any]], store_path: Path) -> int:
    """Hold what a client was told against the log; return how many decisions are not logged."""
    with closing(open_store(str(store_path))) as store:
        events = store.events("demo", limit=10**7)
    decisions = {event.key: msgspec.json.decode(event.body) for event in events if event.kind == "decision"}
    outcomes: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.kind == "outcome":
            body = msgspec.json.decode(event.body)
            outcomes.setdefault(body["decision_id"], {}).update(body["values"])
    unlogged = 0
    for one in history:
        id_ = one["metadata"].get("decision_id", "")
        if one["metadata"]["logged"]:
            assert (decisions[id_]["action"], one["value"]) == (one["variant"], one["variant"])
            assert decisions[id_]["request"]["context"]["age"] == 20 + int(one["user"].split("-")[1]) % 60
            assert outcomes[id_].items() >= one["signals"].items(), "an outcome was lost"
        else:
            unlogged += 1
            assert (one["value"], one["variant"]) == ("nothing", "nothing")
            if (kept := id_.removeprefix(UNLOGGED_PREFIX)) in decisions:
                assert outcomes.get(kept, {}).get("shown") in (None, False), "nobody was shown it"
    return unlogged


if __name__ == "__main__":
    run_visits(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
