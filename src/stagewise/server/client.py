"""The Python client: it always returns an action, the server's decision or the safe action with a reason.

It needs only the standard library; importing it loads neither NumPy nor Numba.
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import Reason, ReasonDetails
from stagewise.server.client_http import ConnectionFailed, HttpConnectionPool, HttpResponse
from stagewise.server.client_not_shown import NotShownReporter
from stagewise.server.client_types import (
    DecisionRequest,
    DecisionResponse,
    ErrorResponse,
    OutcomeResponse,
    RequestRejected,
    ServerUnavailable,
    build_request,
    encode_json,
    encoded_size,
    parse_error_code,
    parse_error_response,
    parse_outcome_response,
    split_batches,
)

__all__ = [
    "DecisionResponse",
    "ServerUnavailable",
    "Client",
    "RequestRejected",
    "ErrorResponse",
    "OutcomeResponse",
    "DecisionRequest",
]

UNLOGGED_PREFIX = "unlogged-"  # of the id of a decision that the server did not log
MAX_SETTING = 86_400.0  # seconds, and tries
RETRY_STATUSES = (429, 503)


class Client:
    """A client of a server, for one experiment. Threads may share one.

    `decide` always returns an action: if there is no usable answer in time, it returns the safe action with
    `logged=False` and a `reason`. If the server has logged such a decision, the client later reports it as not shown,
    so that nothing is learned from it. The client creates the id of a decision, so that a retry gets the decision that
    was logged.

    Args:
        url: The server's address, such as `http://127.0.0.1:8000`.
        key: A key with the role writer.
        experiment: The name of the experiment.
        safe: The safe action, returned if the server does not answer.
        timeout: The deadline of one request in seconds, with all its retries. DNS lookups are the operating system's
            and can take longer.
        tries: How often a request is sent at most.
        pause: Seconds before the second try; doubles with every further one.

    Raises:
        StagewiseError: A setting is invalid.

    Example:
        >>> client = Client("http://127.0.0.1:9", key="-", experiment="messages", safe="nothing", timeout=0.1)
        >>> decision = client.decide({"age": 34})
        >>> decision.action, decision.logged, decision.reason
        ('nothing', False, 'server_unavailable')
    """

    def __init__(
        self,
        url: str,
        key: str,
        experiment: str,
        safe: str,
        *,
        timeout: float = 1.0,
        tries: int = 4,
        pause: float = 0.02,
    ) -> None:
        if not isinstance(safe, str) or not safe:
            raise StagewiseError(
                ErrorCode.MISSING_VALUE,
                "safe is {safe}; it must be the name of the safe action, which the client plays when no server answers",
                safe=safe_repr(safe),
            )
        if not isinstance(experiment, str) or not experiment.isprintable() or not experiment:
            raise StagewiseError(
                ErrorCode.INVALID_NAME,
                "experiment is {experiment}; it must be the name of an experiment, as `serve` prints it",
                experiment=safe_repr(experiment),
            )
        for name, value, least in (("timeout", timeout, 1e-3), ("tries", tries, 1), ("pause", pause, 0.0)):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not least <= value <= MAX_SETTING or (name == "tries" and value != int(value)):
                raise StagewiseError(
                    ErrorCode.OUT_OF_RANGE,
                    "{name} is {value}; it must be a number from {least:g} to {max_setting:g}",
                    name=name,
                    value=safe_repr(value),
                    least=least,
                    max_setting=MAX_SETTING,
                )
        self.safe, self.timeout, self.tries, self.pause = safe, float(timeout), int(tries), float(pause)
        self._pool = HttpConnectionPool(url, key)
        self._path = f"{self._pool.path}/v1/{quote(experiment, safe='')}"
        self._not_shown = NotShownReporter(self._report_not_shown)

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        only: Sequence[str] | None = None,
        decision_id: str | None = None,
    ) -> DecisionResponse:
        """Return the action for one user.

        Args:
            context: Every number and segment that the problem declares, by name.
            only: The available actions; None: all.
            decision_id: Your id. The same id with the same arguments gets the same decision.

        Returns:
            The server's decision, or the safe action with `logged=False`.

        Raises:
            RequestRejected: The server rejected the request (4xx); `code` says why.

        Example:
            >>> with Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1) as client:
            ...     client.decide({"age": 34}, only=["digest"]).action
            'nothing'
        """
        request = build_request(DecisionRequest(context or {}, only, decision_id))
        response = self._send_request("/decisions", request)
        if response.status == 200 and isinstance(response.content, dict):
            return self._parse_decision(response.content, request)
        return self._build_safe_decision(request, response)

    def decide_many(
        self, requests: Iterable[Mapping[str, Any] | DecisionRequest]
    ) -> list[DecisionResponse | ErrorResponse]:
        """Return the actions for many users, in requests of up to 1000 items.

        Args:
            requests: For each user a context, or `DecisionRequest(context, only, decision_id)`.

        Returns:
            For each user a decision, or an error if the server rejected that item.

        Raises:
            RequestRejected: The server rejected a whole request (4xx).

        Example:
            >>> with Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1) as client:
            ...     [decision.action for decision in client.decide_many([{"age": 34}, {"age": 50}])]
            ['nothing', 'nothing']
        """
        items = [build_request(one if isinstance(one, DecisionRequest) else DecisionRequest(one)) for one in requests]
        return [decision for batch in split_batches(items, encoded_size) for decision in self._decide_batch(batch)]

    def learn(
        self,
        decision: "str | DecisionResponse",
        *,
        shown: bool | None = None,
        outcome_id: str | None = None,
        **signals: float,
    ) -> OutcomeResponse:
        """Report the outcome of a decision, or the part of it that is known.

        A decision that was not logged has no outcome: nothing is sent for it.

        Args:
            decision: The decision, or its id.
            shown: False: the decision was not carried out. True: a deferred decision was carried out.
            outcome_id: Your id of this report. A retry with the same id gets the same answer.
            **signals: Values of the problem's signals by name. Repeating a value changes nothing.

        Returns:
            Which signals were added to the log, were in it already, or arrived too late.

        Raises:
            RequestRejected: The server rejected the outcome (4xx); `code` says why.
            ServerUnavailable: The server did not answer in time. Report the outcome again.

        Example:
            >>> client = Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1)
            >>> client.learn(client.decide({"age": 34}), click=True).accepted
            ()
        """
        id_ = decision if isinstance(decision, str) else decision.decision_id
        if id_.startswith(UNLOGGED_PREFIX):
            return OutcomeResponse(id_)
        content: dict[str, Any] = {"decision_id": id_, **signals}
        content |= {} if shown is None else {"shown": shown}
        content |= {} if outcome_id is None else {"outcome_id": outcome_id}
        response = self._send_request("/outcomes", content)
        if response.status != 200 or not isinstance(response.content, dict):
            raise ServerUnavailable(
                ErrorCode.SERVER_UNAVAILABLE,
                "the outcome of {decision_id} was not delivered: {problem}",
                decision_id=id_,
                problem=response.message,
            )
        return parse_outcome_response(response.content)

    def learn_many(self, outcomes: Iterable[Mapping[str, Any]]) -> list[OutcomeResponse | ErrorResponse]:
        """Report many outcomes, in requests of up to 1000 items.

        Args:
            outcomes: For each a mapping with `decision_id`, signals by name, and optionally `shown` and `outcome_id`.

        Returns:
            For each outcome a response, or an error if the server rejected that item.

        Raises:
            RequestRejected: The server rejected a whole request (4xx).
            ServerUnavailable: The server did not answer in time. Report the outcomes again.

        Example:
            >>> client = Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1)
            >>> client.learn_many([{"decision_id": client.decide().decision_id, "click": True}])[0].accepted
            ()
        """
        items = [dict(outcome) for outcome in outcomes]
        answers: list[OutcomeResponse | ErrorResponse]
        answers = [OutcomeResponse(str(item.get("decision_id"))) for item in items]
        logged = [i for i, item in enumerate(items) if not str(item.get("decision_id")).startswith(UNLOGGED_PREFIX)]
        for batch in split_batches(logged, lambda i: encoded_size(items[i])):
            response = self._send_request("/outcomes", [items[i] for i in batch])
            if response.status != 200 or not isinstance(response.content, list) or len(response.content) != len(batch):
                raise ServerUnavailable(
                    ErrorCode.SERVER_UNAVAILABLE,
                    "the outcomes of {count} decisions were not delivered: {problem}",
                    count=len(batch),
                    problem=response.message,
                )
            for i, content in zip(batch, response.content, strict=True):
                answers[i] = parse_error_response(content) if "code" in content else parse_outcome_response(content)
        return answers

    def cancel(self, decision: "str | DecisionResponse") -> OutcomeResponse:
        """Report that a decision was not carried out, so that nothing is learned from it.

        Args:
            decision: The decision, or its id.

        Returns:
            The server's response.

        Raises:
            RequestRejected: The server rejected the report (4xx).
            ServerUnavailable: The server did not answer in time.

        Example:
            >>> client = Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1)
            >>> client.cancel(client.decide()).accepted
            ()
        """
        return self.learn(decision, shown=False)

    def close(self) -> None:
        """Send reports that are still pending, for at most a second, and close all connections."""
        self._not_shown.close()
        self._pool.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide_batch(self, batch: Sequence[dict[str, Any]]) -> Iterator[DecisionResponse | ErrorResponse]:
        response = self._send_request("/decisions", batch)
        is_complete = isinstance(response.content, list) and len(response.content) == len(batch)
        if response.status in (200, 503) and is_complete:  # 503: some of them are not logged, and say so
            for content, request in zip(response.content, batch, strict=True):
                is_error = isinstance(content, dict) and "code" in content
                yield parse_error_response(content) if is_error else self._parse_decision(content, request)
        else:
            yield from (self._build_safe_decision(request, response) for request in batch)

    def _send_request(self, route: str, content: Any) -> HttpResponse:
        """Send a request until it gets an answer that a retry would not change; raise RequestRejected for 4xx."""
        body = encode_json(content)
        until = time.monotonic() + self.timeout
        response = HttpResponse(0, None, "there was no time to send the request", sent=False)
        sent = False
        for turn in range(self.tries):
            if turn:  # half of the pause is random, so that many clients do not retry at the same time
                time.sleep(min(self.pause * 2**turn * random.uniform(0.5, 1.0), max(0.0, until - time.monotonic())))
            if time.monotonic() >= until:
                break
            left = until - time.monotonic()  # a try that hangs leaves half of the time to the next one
            response = self._pool.post(self._path + route, body, until - (left / 2.0 if turn < self.tries - 1 else 0.0))
            sent = sent or response.sent
            if response.status and response.status not in RETRY_STATUSES:
                break
        if 400 <= response.status < 500 and response.status not in RETRY_STATUSES:
            code = parse_error_code(response.content)
            raise RequestRejected(code, "{problem}", status=response.status, problem=response.message)
        return response._replace(sent=sent)

    def _parse_decision(self, content: Any, request: Mapping[str, Any]) -> DecisionResponse:
        """Return the server's decision, or the safe action if the answer cannot be read."""
        try:
            decision = DecisionResponse(**{name: content[name] for name in DecisionResponse._fields if name in content})
        except (TypeError, KeyError):
            decision = None
        if decision is None or not isinstance(decision.action, str) or not isinstance(decision.probabilities, dict):
            return self._build_safe_decision(request, HttpResponse(0, None, "the server's answer cannot be read"))
        if not decision.logged:
            message = decision.message or "the server did not log it"
            answer = {"reason": decision.reason, "message": message}
            return self._build_safe_decision(request, HttpResponse(0, answer, message))
        self._not_shown.discard(decision.decision_id)
        return decision

    def _build_safe_decision(self, request: Mapping[str, Any], response: HttpResponse) -> DecisionResponse:
        """Return the safe action; if the server may have logged the decision, report it as not shown."""
        if response.sent:
            self._not_shown.add(request["decision_id"])
        content = response.content if isinstance(response.content, dict) else {}
        cause = ReasonDetails.of(Reason.SERVER_UNAVAILABLE, error=response.message)
        message, reason = content.get("message") or cause.message, content.get("reason") or str(cause.reason)
        id_ = f"{UNLOGGED_PREFIX}{request['decision_id']}"
        return DecisionResponse(id_, self.safe, {self.safe: 1.0}, message=message, logged=False, reason=reason)

    def _report_not_shown(self, ids: Sequence[str]) -> list[str]:
        """Report decisions as not shown; return the ids that the server does not know."""
        response = self._send_request("/outcomes", [{"decision_id": id_, "shown": False} for id_ in ids])
        if response.status != 200 or not isinstance(response.content, list) or len(response.content) != len(ids):
            raise ConnectionFailed(response.message)
        return [id_ for id_, content in zip(ids, response.content, strict=True) if "code" in content]
