"""The Python client: it always returns an action, the server's decision or the safe action with a reason.

It needs only the standard library; importing it loads neither NumPy nor Numba.
"""

import json
import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.connections import Answer, ConnectionPool
from stagewise.server.ids import new_id

MAX_BATCH_SIZE, MAX_BODY_BYTES = 1000, 1_000_000  # of a list in one request
MAX_SETTING = 86_400.0  # seconds, and attempts
RETRY_STATUSES = (429, 503)
UNLOGGED_PREFIX = "unlogged-"  # of the id of a decision that the server did not log
NOT_SHOWN_BATCH_SIZE, MAX_NOT_SHOWN = 500, 100_000  # more are dropped: the server has been unavailable for very long
NOT_SHOWN_DELAYS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # seconds; an id that is unknown after the last was never logged


class RequestRejected(StagewiseError):
    """The server rejected a request (4xx).

    Attributes:
        code: The server's error code.
        status: The HTTP status.

    Example:
        >>> error = RequestRejected(ErrorCode.UNKNOWN_EXPERIMENT, "no experiment {name!r}", status=404, name="mails")
        >>> error.code, error.status, str(error)
        (<ErrorCode.UNKNOWN_EXPERIMENT: 'unknown_experiment'>, 404, "no experiment 'mails'")
    """

    @property
    def status(self) -> int:
        return int(self.details["status"])


class ServerUnavailable(StagewiseError):
    """An outcome could not be delivered: the server did not answer in time. Report it again.

    Example:
        >>> str(ServerUnavailable(ErrorCode.SERVER_UNAVAILABLE, "{id} was not delivered", id="mail-17"))
        'mail-17 was not delivered'
    """


class DecisionRequest(NamedTuple):
    """A request for a decision.

    Attributes:
        context: Every column that the problem declares, by name; a missing value is None or NaN.
        only: The available actions; None: all.
        decision_id: Your id; None: the client creates one.
        propose: An action, or probabilities by action; None: the problem's policy decides.
        scores: A score for every action; None: the problem's policy decides.
        user: Your name for the user, under whose key the context is kept; None: it cannot be erased.
    """

    context: Mapping[str, Any] = {}
    only: Sequence[str] | None = None
    decision_id: str | None = None
    propose: str | Mapping[str, float] | None = None
    scores: Mapping[str, float] | None = None
    user: str | None = None


class DecisionResponse(NamedTuple):
    """A decision.

    Attributes:
        decision_id: The id for outcomes.
        action: The action to carry out.
        probabilities: The probability of each action.
        mode: The mode of the experiment; `away` if the server did not answer.
        version: The version of the problem.
        snapshot: The last row of the log that the policy snapshot had learned.
        limits: By name: `estimate`, `pessimistic_cost` and `threshold`.
        message: The reason as a sentence for people.
        estimated_reward: The estimated mean reward.
        logged: False: the action is the safe one, and outcomes are not accepted.
        reason: Why the safe action is served, as a code of `stagewise.Reason`; None if there is no special reason.
        proposal: What became of `propose` or `scores`: `overlap`, `held_back` and `binding`; None if there was neither.
        reward_guarantee: "forgetting" where outcomes of the reward lose weight with age, so that no theorem bounds its
            mean; None: one does, for a policy's own decision.
    """

    decision_id: str
    action: str
    probabilities: dict[str, float]
    mode: str = "away"
    version: int = 0
    snapshot: int = -1
    limits: Mapping[str, Mapping[str, float | None]] = {}
    message: str | None = None
    estimated_reward: float | None = None
    logged: bool = True
    reason: str | None = None
    proposal: Mapping[str, Any] | None = None
    reward_guarantee: str | None = None


class ErrorResponse(NamedTuple):
    """An item of a batch that the server rejected.

    Attributes:
        code: The error code, a value of `stagewise.ErrorCode`.
        message: The error as a sentence for people.
        decision_id: The id of the item, if it has one.
    """

    code: str
    message: str
    decision_id: str | None = None


class OutcomeResponse(NamedTuple):
    """The server's response to an outcome.

    Attributes:
        decision_id: The id of the decision.
        accepted: Signals that this report added to the log.
        duplicate: Signals that were in the log with the same value.
        late: Signals that arrived after their window closed.
    """

    decision_id: str
    accepted: tuple[str, ...] = ()
    duplicate: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


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
        max_attempts: How often a request is sent at most.
        retry_delay: Seconds before the second attempt; doubles with every further one.

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
        max_attempts: int = 4,
        retry_delay: float = 0.02,
    ) -> None:
        for code, name, text, rule in (
            (ErrorCode.MISSING_VALUE, "safe", safe, "the name of the safe action, for when no server answers"),
            (ErrorCode.INVALID_NAME, "experiment", experiment, "the name of an experiment, as `serve` prints it"),
        ):
            if not isinstance(text, str) or not text.isprintable() or not text:
                raise StagewiseError.must_be(code, name, text, rule)
        for name, value, least in (
            ("timeout", timeout, 1e-3),
            ("max_attempts", max_attempts, 1),
            ("retry_delay", retry_delay, 0),
        ):
            if not isinstance(value, int | float) or not least <= value <= MAX_SETTING:
                rule = f"a number from {least:g} to {MAX_SETTING:g}"
                raise StagewiseError.must_be(ErrorCode.OUT_OF_RANGE, name, value, rule)
        self.safe, self.timeout, self.max_attempts, self.retry_delay = safe, timeout, int(max_attempts), retry_delay
        self._connections = ConnectionPool(url, key)
        self._experiment_path = f"/v1/{quote(experiment, safe='')}"
        self._not_shown: dict[str, int] = {}  # ids to report as not shown, and how often the server did not know them
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None  # reports them; it ends when all are reported

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        only: Sequence[str] | None = None,
        decision_id: str | None = None,
        *,
        propose: str | Mapping[str, float] | None = None,
        scores: Mapping[str, float] | None = None,
        user: str | None = None,
    ) -> DecisionResponse:
        """Return the action for one user.

        Args:
            context: Every column that the problem declares, by name; a missing value is None or NaN.
            only: The available actions; None: all.
            decision_id: Your id. The same id with the same arguments gets the same decision.
            propose: An action, or probabilities by action; as much of it is played as the limits allow.
            scores: A score for every action; the safe mixture with the highest score is played.
            user: Your name for the user; the server keeps the context so that it can be erased by this name.

        Returns:
            The server's decision, or the safe action with `logged=False`.

        Raises:
            RequestRejected: The server rejected the request (4xx); `code` says why.

        Example:
            >>> with Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1) as client:
            ...     client.decide({"age": 34}, only=["digest"]).action
            'nothing'
        """
        request = build_request(DecisionRequest(context or {}, only, decision_id, propose, scores, user))
        answer = self._send("/decisions", request)
        return self._read_decision(request, answer, answer.content if answer.status == 200 else None)

    def decide_many(
        self, requests: Iterable[Mapping[str, Any] | DecisionRequest]
    ) -> list[DecisionResponse | ErrorResponse]:
        """Return the actions for many users, in requests of up to 1000 items.

        Args:
            requests: For each user a context, or `DecisionRequest(context, only, decision_id, propose, scores, user)`.

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
        decisions: list[DecisionResponse | ErrorResponse] = []
        for batch in split_batches(items):
            answer = self._send("/decisions", batch)  # 503: some of them are not logged, and say so
            contents = answer.get_list(len(batch)) if answer.status in (200, 503) else None
            for request, content in zip(batch, contents or [None] * len(batch), strict=True):
                error = parse_error(content)
                decisions.append(self._read_decision(request, answer, content) if error is None else error)
        return decisions

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
        optional = {"shown": shown, "outcome_id": outcome_id}
        given = {name: value for name, value in optional.items() if value is not None}
        answer = self._send("/outcomes", {"decision_id": id_, **signals, **given})
        if answer.status != 200 or not isinstance(answer.content, dict):
            raise build_undelivered(1, id_, answer)
        return parse_outcome(answer.content)

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
        is_logged = [not str(item.get("decision_id")).startswith(UNLOGGED_PREFIX) for item in items]
        learned: list[OutcomeResponse | ErrorResponse] = []
        for batch in split_batches([item for item, logged in zip(items, is_logged, strict=True) if logged]):
            answer = self._send("/outcomes", batch)
            contents = answer.get_list(len(batch)) if answer.status == 200 else None
            if contents is None:
                raise build_undelivered(len(batch), batch[0].get("decision_id"), answer)
            learned += [parse_error(content) or parse_outcome(content) for content in contents]
        left = iter(learned)
        return [
            next(left) if logged else OutcomeResponse(str(item.get("decision_id")))
            for item, logged in zip(items, is_logged, strict=True)
        ]

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
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1.0)
        self._connections.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe(self) -> dict[str, Any] | None:
        """Return the experiment as the server describes it: status, problem, names of context columns.

        Returns:
            The JSON of `GET /v1/{experiment}`; None if the server does not answer.

        Raises:
            RequestRejected: The server rejected the request (4xx).

        Example:
            >>> Client("http://127.0.0.1:9", "-", "messages", safe="nothing", timeout=0.1).describe() is None
            True
        """
        answer = self._send("", None)
        return answer.content if answer.status == 200 and isinstance(answer.content, dict) else None

    def _send(self, route: str, content: Any) -> Answer:
        """Send a request until it gets an answer that a retry would not change; raise RequestRejected for 4xx."""
        body = None if content is None else encode_json(content)
        path, until = self._experiment_path + route, time.monotonic() + self.timeout
        answer, sent = Answer(0, None, "there was no time to send the request", sent=False), False
        for turn in range(self.max_attempts):
            if turn:  # half of the delay is random, so that many clients do not retry at the same time
                delay = self.retry_delay * 2**turn * random.uniform(0.5, 1.0)
                time.sleep(min(delay, max(0.0, until - time.monotonic())))
            left = until - time.monotonic()  # an attempt that hangs leaves half of the time to the next one
            if left <= 0.0:
                break
            answer = self._connections.send(path, body, until - (left / 2.0 if turn < self.max_attempts - 1 else 0.0))
            sent = sent or answer.sent
            if answer.status and answer.status not in RETRY_STATUSES:
                break
        if 400 <= answer.status < 500 and answer.status not in RETRY_STATUSES:
            try:
                code = ErrorCode(answer.content["code"])
            except (TypeError, KeyError, ValueError):  # of a proxy, or of a later version
                code = ErrorCode.INVALID_REQUEST
            raise RequestRejected(code, "{problem}", problem=answer.problem, status=answer.status)
        return answer._replace(sent=sent)

    def _read_decision(self, request: Mapping[str, Any], answer: Answer, content: Any) -> DecisionResponse:
        """Return the server's decision, or the safe action if there is none that is logged and can be read.

        If the server may have logged it then, it is reported as not shown.
        """
        problem, found = answer.problem, content if isinstance(content, dict) else {}
        try:
            decision = DecisionResponse(**{name: found[name] for name in DecisionResponse._fields if name in found})
            is_usable = (
                decision.logged and isinstance(decision.action, str) and isinstance(decision.probabilities, dict)
            )
        except TypeError:
            is_usable = False
        if is_usable:
            with self._lock:  # a retry got the decision, which is carried out now
                self._not_shown.pop(decision.decision_id, None)
            return decision
        id_ = request["decision_id"]
        if answer.sent:
            self._report_not_shown(id_)
        cause = ReasonDetails.of(FallbackReason.SERVER_UNAVAILABLE, error=problem)
        said = found or (answer.content if isinstance(answer.content, dict) else {})
        reason, message = said.get("reason") or str(cause.reason), said.get("message") or cause.message
        id_ = f"{UNLOGGED_PREFIX}{id_}"
        return DecisionResponse(id_, self.safe, {self.safe: 1.0}, message=message, logged=False, reason=reason)

    def _report_not_shown(self, id_: str) -> None:
        """Report a decision as not shown, in a thread.

        When its window closes, the server would count a missing outcome as the problem declares, and learn from a
        decision that was never carried out.
        """
        with self._lock:
            if len(self._not_shown) < MAX_NOT_SHOWN:
                self._not_shown[id_] = 0
            if self._thread is None:
                self._thread = threading.Thread(target=self._run_reports, name="stagewise-not-shown", daemon=True)
                self._thread.start()

    def _run_reports(self) -> None:
        turn, is_stopping = 0, False
        while True:
            is_stopping = self._stop.wait(NOT_SHOWN_DELAYS[min(turn, len(NOT_SHOWN_DELAYS) - 1)])
            turn = 0 if self._report_batch() else turn + 1
            with self._lock:
                if is_stopping or not self._not_shown:
                    self._thread = None
                    return

    def _report_batch(self) -> bool:
        """Report a batch; return whether the server knows all of its ids."""
        with self._lock:
            ids = list(self._not_shown)[:NOT_SHOWN_BATCH_SIZE]
        try:
            responses = self.learn_many({"decision_id": id_, "shown": False} for id_ in ids)
        except Exception:  # rejected or unavailable: retry later
            return False
        unknown = {id_ for id_, response in zip(ids, responses, strict=True) if isinstance(response, ErrorResponse)}
        with self._lock:
            for id_ in ids:
                times = self._not_shown.pop(id_, len(NOT_SHOWN_DELAYS)) + 1
                if id_ in unknown and times < len(NOT_SHOWN_DELAYS):
                    self._not_shown[id_] = times
        return not unknown


def encode_value(value: Any) -> Any:
    """Return a value of a context for JSON: None if it is missing, ISO text for a date.

    >>> from datetime import date
    >>> encode_value(float("nan")), encode_value(date(2026, 3, 1)), encode_value("NZ")
    (None, '2026-03-01', 'NZ')
    """
    value = value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value


def build_request(request: DecisionRequest) -> dict[str, Any]:
    """Return the body of a request, with an id, so that every retry has the same one."""
    if not isinstance(request.context, Mapping):
        raise StagewiseError.must_be(ErrorCode.WRONG_TYPE, "the context", request.context, "a mapping by name")
    context = {name: encode_value(value) for name, value in request.context.items()}
    body: dict[str, Any] = {"context": context, "decision_id": request.decision_id or new_id()}
    if request.user is not None:
        body["user"] = request.user
    if request.only is not None:
        body["only"] = list(request.only)
    for name, given in (("propose", request.propose), ("scores", request.scores)):
        if given is not None:
            body[name] = dict(given) if isinstance(given, Mapping) else given
    return body


def split_batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    """Split items into batches that the server accepts."""
    batch, total = list[Any](), 0
    for item in items:
        size = len(encode_json(item)) + 1
        if batch and (len(batch) == MAX_BATCH_SIZE or total + size > MAX_BODY_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def parse_outcome(content: Mapping[str, Any]) -> OutcomeResponse:
    names = OutcomeResponse._fields[1:]
    return OutcomeResponse(content["decision_id"], *(tuple(content.get(name, ())) for name in names))


def parse_error(content: Any) -> ErrorResponse | None:
    """Return the error of an item; None if it is none."""
    if not isinstance(content, dict) or "code" not in content:
        return None
    return ErrorResponse(content["code"], content["message"], content.get("decision_id"))


def build_undelivered(count: int, id_: Any, answer: Answer) -> ServerUnavailable:
    """Return the error of outcomes that were not delivered."""
    template = "the outcomes of {count} decisions from {decision_id} on were not delivered: {problem}"
    details = {"count": count, "decision_id": id_, "problem": answer.problem}
    return ServerUnavailable(ErrorCode.SERVER_UNAVAILABLE, template, **details)


def encode_json(content: Any) -> bytes:
    """Return content as JSON; NumPy scalars are numbers."""
    try:
        return json.dumps(content, allow_nan=False, default=lambda value: value.item()).encode()
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        template = "{content} cannot be sent as JSON: {error}; contexts and outcomes hold numbers, text and booleans"
        raise StagewiseError(ErrorCode.NOT_SERIALIZABLE, template, content=safe_repr(content), error=error) from None
