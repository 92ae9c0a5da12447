"""Sending events: at least once, in a thread and an event loop of its own, so that no decision waits.

What is to be sent to an endpoint is saved before the first attempt, with the place in the log up to which events were
read. A server that is killed therefore continues with the same events and ids.
"""

import asyncio
import logging
import random
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from stagewise import __version__
from stagewise.problem.errors import StagewiseError
from stagewise.server.controls import ACKNOWLEDGE
from stagewise.server.event_log import CONTROL, GLOBAL
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.webhooks.endpoints import (
    Endpoint,
    WebhookEvent,
    build_finding,
    is_loopback,
    list_findings,
    read_changes,
    read_secrets,
    sign,
)

if TYPE_CHECKING:
    from stagewise.server.experiments import Experiments

log = logging.getLogger("stagewise.server")

POLL_INTERVAL = 0.1  # seconds between two looks for events
DELAYS = (1.0, 5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0)  # seconds before each further attempt; the last one repeats
MAX_AGE = 3 * 86_400.0  # seconds for which an event is tried
MAX_PENDING = 1000  # events of an endpoint; the oldest is dropped
TIMEOUT = 10.0  # seconds for a complete attempt
DELIVERED, FAILED, DROPPED = "delivered", "failed", "dropped"


class Pending(msgspec.Struct):
    """An event that is not delivered yet."""

    id: str
    body: str
    since: float
    due: float
    attempts: int = 0


class EndpointState(msgspec.Struct):
    """What an endpoint got and will get."""

    rows: dict[str, int] = {}
    """By experiment, the number of the last row that was read."""
    acknowledged: dict[str, int] = {}
    """By experiment, the row of the last acknowledgement."""
    open: dict[str, list[str]] = {}
    """By experiment, the open findings that were told."""
    pending: list[Pending] = []


class WebhookSender:
    """A thread that sends events to endpoints while this process leads; another process does so otherwise."""

    def __init__(self, server: "Experiments", endpoints: Sequence[Endpoint]) -> None:
        self.server, self.endpoints = server, endpoints
        self._states: dict[str, EndpointState] = {}  # while this process leads
        self._sending: dict[str, asyncio.Task[None]] = {}  # by event id and endpoint
        self._first_rows = dict[str, int]()  # where a new endpoint begins
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="webhooks", daemon=True)

    def start(self) -> None:
        """Start the thread. New endpoints get what happens from now on, and what is open."""
        experiments = {name: self.server.experiment(name).controls.row for name in self.server.experiments()}
        self._first_rows = experiments | {GLOBAL: self.server.everywhere.row}
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what is pending is sent after the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=TIMEOUT)

    def count_pending(self) -> dict[str, int]:
        """Return the number of pending events by endpoint, of the process that sends."""
        return {name: len(state.pending) for name, state in list(self._states.items())}

    async def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._step()
            except StoreUnavailable:
                pass  # nothing is lost: the events are in the log
            except Exception:
                log.exception("reading events for webhooks failed; it is tried again")
            await asyncio.sleep(POLL_INTERVAL)
        for task in self._sending.values():
            task.cancel()

    def _step(self) -> None:
        """Read new events and start the attempts that are due."""
        if not self.server.learner.is_leader:
            self._states.clear()
            return
        for endpoint in self.endpoints:
            state = self._states.get(endpoint.name) or self._restore(endpoint)
            self._read(endpoint, state)
            for one in state.pending:
                key = f"{one.id} {endpoint.name}"
                if one.due <= time.time() and key not in self._sending:
                    task = self._sending[key] = asyncio.create_task(self._send(endpoint, state, one))
                    task.add_done_callback(partial(self._forget, key))

    def _forget(self, key: str, _: "asyncio.Task[None]") -> None:
        del self._sending[key]

    def _restore(self, endpoint: Endpoint) -> EndpointState:
        """Return the saved state, or a new one."""
        content = self.server.store.webhook_state(endpoint.name)
        if content is None:
            state = EndpointState(dict(self._first_rows))
            self._save(endpoint, state)
        else:
            state = msgspec.json.decode(content, type=EndpointState)
        self._states[endpoint.name] = state
        return state

    def _save(self, endpoint: Endpoint, state: EndpointState) -> None:
        self.server.store.save_webhook_state(endpoint.name, msgspec.json.encode(state))

    def _read(self, endpoint: Endpoint, state: EndpointState) -> None:
        """Add new events, and save them with the place up to which the log is read."""
        now, new = time.time(), EndpointState(*map(copy, msgspec.structs.astuple(state)))
        for name in (GLOBAL, *self.server.experiments()):
            for event in self._iter_events(new, name):
                if endpoint.wants(event.type, name):
                    new.pending.append(Pending(event.id, event.body.decode(), now, now))
        if (new.rows, new.open) == (state.rows, state.open):
            return
        for one in new.pending[:-MAX_PENDING]:
            self._drop(endpoint, one, "too many are pending")
        del new.pending[:-MAX_PENDING]
        self._save(endpoint, new)
        for field in EndpointState.__struct_fields__:
            setattr(state, field, getattr(new, field))

    def _iter_events(self, state: EndpointState, name: str) -> Iterator[WebhookEvent]:
        """Yield the new events of an experiment, or of all, and move the state on."""
        server, after = self.server, state.rows.get(name, 0)
        experiment = None if name == GLOBAL else server.experiment(name)
        last = server.everywhere.row if experiment is None else experiment.controls.row
        if last > after:
            for row, event in read_changes(server.store, name, after, last):
                if row.kind == CONTROL and msgspec.json.decode(row.body)["what"] == ACKNOWLEDGE:
                    state.acknowledged[name] = row.number
                if event is not None:
                    yield event
            state.rows[name] = last
        if experiment is None:
            return
        if not experiment.policy_snapshot.read:  # its alerts are not known yet
            return
        told, findings = state.open.get(name, []), list_findings(experiment)
        if told != list(findings):
            for key in findings.keys() - set(told):
                yield build_finding(
                    experiment, key, state.acknowledged.get(name, 0), *findings[key], server.store.now()
                )
            state.open[name] = list(findings)

    async def _send(self, endpoint: Endpoint, state: EndpointState, one: Pending) -> None:
        """Make one attempt, and save what became of it."""
        counts = self.server.counters.webhooks
        try:
            async with asyncio.timeout(TIMEOUT):
                await post(endpoint, one.id, one.body.encode())
        except (OSError, TimeoutError, StagewiseError, asyncio.IncompleteReadError, ValueError) as error:
            one.attempts += 1
            delay = DELAYS[min(one.attempts, len(DELAYS)) - 1] * random.uniform(0.8, 1.2)
            one.due = time.time() + delay
            counts[endpoint.name, FAILED] += 1
            message = "webhook %r: attempt %d of event %s failed (%s); the next is in %.0f s"
            log.warning(message, endpoint.name, one.attempts, one.id, str(error) or type(error).__name__, delay)
            if time.time() - one.since < MAX_AGE:
                return
            self._drop(endpoint, one, "it is too old")
        else:
            counts[endpoint.name, DELIVERED] += 1
        if one in state.pending:
            state.pending.remove(one)
        with suppress(StoreUnavailable):  # it is sent again after a restart, with the same id
            self._save(endpoint, state)

    def _drop(self, endpoint: Endpoint, one: Pending, why: str) -> None:
        self.server.counters.webhooks[endpoint.name, DROPPED] += 1
        log.error("webhook %r: event %s is dropped, since %s", endpoint.name, one.id, why)


async def post(endpoint: Endpoint, id_: str, body: bytes) -> None:
    """Send an event; raise OSError unless the answer is 2xx. Redirects are not followed, and no body is read."""
    url, now = endpoint.url, int(time.time())
    signature = sign(await asyncio.to_thread(read_secrets, endpoint.secret_file), id_, now, body)
    port = url.port or (443 if url.scheme == "https" else 80)
    context = ssl.create_default_context() if url.scheme == "https" else None
    reader, writer = await asyncio.open_connection(url.hostname, port, ssl=context, limit=1 << 14)
    try:
        peer = writer.get_extra_info("peername")[0]
        if endpoint.is_loopback_only and not is_loopback(peer):
            raise OSError(f"{url.hostname} is {peer}, which is not this machine")
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = {
            "host": url.netloc,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "user-agent": f"stagewise/{__version__}",
            "connection": "close",
            "webhook-id": id_,
            "webhook-timestamp": str(now),
            "webhook-signature": signature,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await writer.drain()
        version, _, rest = (await reader.readline()).decode("latin-1").partition(" ")
        status = rest[:3]
        if not version.startswith("HTTP/1.") or not status.startswith("2"):
            raise OSError(f"the answer was {status}" if status.isdigit() else "the answer was not HTTP")
    finally:
        writer.transport.abort()
