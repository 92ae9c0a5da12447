"""An OpenFeature provider: a flag is an experiment, its variants are the actions, and `track` reports outcomes.

It needs the extra `openfeature`. It loads neither NumPy nor Numba.
"""

import asyncio
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from openfeature.evaluation_context import EvaluationContext
from openfeature.event import ProviderEventDetails
from openfeature.exception import ErrorCode as FlagError
from openfeature.exception import ProviderFatalError
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata
from openfeature.track import TrackingEventDetails

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.records.reason import FallbackReason
from stagewise.server.client import (
    Client,
    DecisionResponse,
    ErrorResponse,
    RequestRejected,
    ServerUnavailable,
    encode_json,
)

logger = logging.getLogger(__name__)

MAX_REMEMBERED, MAX_PENDING_OUTCOMES = 100_000, 100_000
DELIVERY_DELAYS = (0.1, 0.3, 1.0, 3.0, 10.0)  # seconds before an outcome is sent again; the last one repeats
BATCH_SIZE = 200
KEY_REFUSED = (401, 403)
CLOSING_S = 5.0  # for outcomes that are not delivered at shutdown
IDS = ("decision_id", "outcome_id")  # attributes of an event or a context that are no signal and no column
NO_ANSWER = str(FallbackReason.SERVER_UNAVAILABLE)
FLAG_ERRORS = {
    ErrorCode.UNKNOWN_EXPERIMENT: FlagError.FLAG_NOT_FOUND,
    ErrorCode.UNAUTHORIZED: FlagError.PROVIDER_NOT_READY,
    ErrorCode.FORBIDDEN: FlagError.PROVIDER_NOT_READY,
}


@dataclass
class Flag:
    """An experiment."""

    client: Client
    actions: tuple[str, ...] = ()
    columns: frozenset[str] | None = None
    """The columns of a context; None: the server has not told them yet."""


def build_resolvers(*kinds: type) -> tuple[Any, Any]:
    """Return the methods of OpenFeature that resolve flags whose values are of these types."""

    def resolve(
        self: Any, flag_key: str, default_value: Any, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Any]:
        """Decide; the value is the name of the action, or what `values` says for it."""
        found: FlagResolutionDetails[Any] = self._resolve(flag_key, default_value, evaluation_context, kinds)
        return found

    async def resolve_async(self: Any, *arguments: Any, **named: Any) -> FlagResolutionDetails[Any]:
        """Decide in a thread."""
        return await asyncio.to_thread(resolve, self, *arguments, **named)

    return resolve, resolve_async


class StagewiseProvider(AbstractProvider):
    """Evaluates flags by decisions of a stagewise server.

    The flag's key is the name of an experiment. The attributes of the evaluation context that the experiment declares
    are the user's context; other attributes are left out. The value is the name of the action, or what `values` says
    for it. The reason is the decision's reason code, or `SPLIT`. The metadata hold the `decision_id`, the action's
    probability, and the estimate, bound and limit of every cost.

    If the server does not answer or rejects the request, the value is that of the safe action.

    `track("EXPERIMENT.SIGNAL", context, details)` reports one signal: `details.value`, or 1. `track("EXPERIMENT",
    context, details)` reports the attributes of the details as signals. The outcome belongs to the attribute
    `decision_id` of the details or of the context, else to the last decision of the same targeting key in this
    process. Outcomes are delivered by a thread, which retries while the server is unavailable.

    Args:
        url: The server's address.
        key: A key with the role writer.
        safe: By flag, the safe action, for when no server answers. Other flags are not found.
        values: For flags that are not text: by flag and by action, the value.
        timeout: The deadline of one evaluation in seconds.

    Example:
        >>> from openfeature import api
        >>> provider = StagewiseProvider("http://127.0.0.1:9", "-", {"notifications": "nothing"}, timeout=0.1)
        >>> api.set_provider_and_wait(provider, domain="mail")
        >>> details = api.get_client("mail").get_string_details("notifications", "nothing")
        >>> details.value, details.reason
        ('nothing', 'server_unavailable')
        >>> api.clear_providers()
    """

    def __init__(
        self,
        url: str,
        key: str,
        safe: Mapping[str, str],
        *,
        values: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: float = 1.0,
    ) -> None:
        super().__init__()
        self._flags = {name: Flag(Client(url, key, name, action, timeout=timeout)) for name, action in safe.items()}
        self._values = values or {}
        self._last: OrderedDict[tuple[str, str], str] = OrderedDict()  # the last decision of a user
        self._lock, self._is_away = threading.Lock(), False
        self._outcomes = OutcomeQueue()

    def get_metadata(self) -> Metadata:
        """Return the provider's name."""
        return Metadata("stagewise")

    def initialize(self, evaluation_context: EvaluationContext) -> None:
        """Read the experiments; a server that does not answer yet is no error, since flags have a safe action."""
        for name, flag in self._flags.items():
            try:
                self._describe(name, flag)
            except RequestRejected as error:
                raise ProviderFatalError(f"{name}: {error}") from error

    def shutdown(self) -> None:
        """Deliver what is pending, for at most five seconds, and close the connections."""
        self._outcomes.close()
        for flag in self._flags.values():
            flag.client.close()

    resolve_boolean_details, resolve_boolean_details_async = build_resolvers(bool)
    resolve_string_details, resolve_string_details_async = build_resolvers(str)
    resolve_integer_details, resolve_integer_details_async = build_resolvers(int)
    resolve_float_details, resolve_float_details_async = build_resolvers(int, float)
    resolve_object_details, resolve_object_details_async = build_resolvers(dict, list, tuple, Mapping)

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Report an outcome; it is sent by a thread, and an event that cannot be sent is logged as a warning."""
        context = evaluation_context or EvaluationContext()
        details = tracking_event_details or TrackingEventDetails()
        key, signals = tracking_event_name, {k: v for k, v in details.attributes.items() if k not in IDS}
        if key not in self._flags and "." in key:
            key, _, signal = key.rpartition(".")
            signals = {signal: 1.0 if details.value is None else details.value}
        named = details.attributes.get("decision_id") or context.attributes.get("decision_id")
        decision_id = named or self._last.get((key, context.targeting_key or ""))
        flag = self._flags.get(key)
        if flag is None or decision_id is None or not signals:
            lacks = "experiment" if flag is None else "signal" if not signals else "decision"
            logger.warning("event %r of user %r has no %s", tracking_event_name, context.targeting_key, lacks)
            return
        ids = {name: details.attributes[name] for name in ("outcome_id",) if name in details.attributes}
        outcome = {**signals, "decision_id": str(decision_id), **ids}
        try:
            encode_json(outcome)  # else every outcome of its batch would be lost with it
        except StagewiseError as error:
            logger.warning("event %r of user %r is dropped: %s", tracking_event_name, context.targeting_key, error)
            return
        self._outcomes.put(flag.client, outcome)

    def _resolve(
        self, key: str, default: Any, context: EvaluationContext | None, kinds: tuple[type, ...]
    ) -> FlagResolutionDetails[Any]:
        """Decide for a user; the value of the safe action if the server has no answer or rejects the request."""
        flag = self._flags.get(key)
        if flag is None:
            message = f"{key!r} has no safe action; name it in `safe` of the provider"
            return FlagResolutionDetails(default, FlagError.FLAG_NOT_FOUND, message, Reason.ERROR)
        values, safe = self._values.get(key, {}), flag.client.safe
        try:
            if flag.columns is None:
                self._describe(key, flag)
            for action in (safe, *flag.actions):  # before a decision is logged
                value = values.get(action, action)
                if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                    message = f"action {action!r} of {key!r} has the value {value!r}; give `values` of the flag's type"
                    return FlagResolutionDetails(default, FlagError.TYPE_MISMATCH, message, Reason.ERROR)
            decision = None if flag.columns is None else self._decide(key, flag, context or EvaluationContext())
        except RequestRejected as error:
            return build_failure(error, default, values.get(safe, safe), safe)
        self._set_away(decision is None or not decision.logged)
        if decision is None:
            return FlagResolutionDetails(
                values.get(safe, safe), reason=NO_ANSWER, variant=safe, flag_metadata={"logged": False}
            )
        value, reason = values.get(decision.action, decision.action), decision.reason or Reason.SPLIT
        return FlagResolutionDetails(
            value, reason=reason, variant=decision.action, flag_metadata=build_metadata(decision)
        )

    def _decide(self, key: str, flag: Flag, context: EvaluationContext) -> DecisionResponse:
        """Decide by the columns that the experiment declares; read them again if the problem has changed."""
        decision_id = context.attributes.get("decision_id")
        id_ = None if decision_id is None else str(decision_id)
        try:
            decision = flag.client.decide(select_columns(flag, context), decision_id=id_)
        except RequestRejected as error:
            if error.code not in (ErrorCode.UNKNOWN_CONTEXT_FIELD, ErrorCode.MISSING_CONTEXT_FIELD):
                raise
            self._describe(key, flag)
            decision = flag.client.decide(select_columns(flag, context), decision_id=id_)
        if context.targeting_key:
            with self._lock:
                self._last[key, context.targeting_key] = decision.decision_id
                self._last.move_to_end((key, context.targeting_key))
                while len(self._last) > MAX_REMEMBERED:
                    self._last.popitem(last=False)
        return decision

    def _describe(self, key: str, flag: Flag) -> None:
        """Read columns and actions, if the server answers. Raises RequestRejected, also for another safe action."""
        detail = flag.client.describe()
        if detail is None:
            return
        safe = detail["problem"]["safe_name"]
        if safe != flag.client.safe:
            problem = "the safe action of {name!r} is given as {given!r}; the server's is {safe!r}"
            details = {"name": key, "given": flag.client.safe, "safe": safe}
            raise RequestRejected(ErrorCode.UNKNOWN_ACTION, problem, status=422, **details)
        flag.actions, flag.columns = tuple(detail["problem"]["action_names"]), frozenset(detail["context_names"])

    def _set_away(self, is_away: bool) -> None:
        """Tell OpenFeature when the server stops answering, and when it answers again."""
        with self._lock:
            changed, self._is_away = self._is_away != is_away, is_away
        if changed and is_away:
            self.emit_provider_stale(ProviderEventDetails(message="no decision was logged; the safe action is served"))
        elif changed:
            self.emit_provider_ready(ProviderEventDetails())


class OutcomeQueue:
    """Outcomes that a thread delivers, in order and in batches, and again while a server is away or refuses the key.

    Costs that are lost would make actions look harmless, and a proxy may refuse a key for a while.
    """

    def __init__(self) -> None:
        self._pending: deque[tuple[Client, dict[str, Any]]] = deque()
        self._changed, self._closing = threading.Condition(), threading.Event()
        self._thread: threading.Thread | None = None

    def put(self, client: Client, outcome: dict[str, Any]) -> None:
        """Add an outcome; it is dropped, with a warning, if too many are pending."""
        with self._changed:
            if len(self._pending) >= MAX_PENDING_OUTCOMES:
                logger.warning("outcome %r is dropped: %d are pending", outcome, len(self._pending))
                return
            self._pending.append((client, outcome))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stagewise-outcomes", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Wait until all are delivered, for at most five seconds."""
        with self._changed:
            self._closing.set()
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(CLOSING_S)
        if self._pending:
            logger.warning("%d outcomes are not delivered", len(self._pending))

    def _run(self) -> None:
        turn = 0
        while True:
            with self._changed:
                while not self._pending and not self._closing.is_set():
                    self._changed.wait()
                batch = list(islice(self._pending, BATCH_SIZE))
            if not batch:
                return
            client, group = next(groupby(batch, itemgetter(0)))
            outcomes = [outcome for _, outcome in group]
            try:
                for outcome, response in zip(outcomes, client.learn_many(outcomes), strict=True):
                    if isinstance(response, ErrorResponse):
                        logger.warning("outcome %r is rejected: %s", outcome, response.message)
            except StagewiseError as error:
                is_refused = isinstance(error, RequestRejected) and error.status in KEY_REFUSED
                if is_refused or isinstance(error, ServerUnavailable):
                    if is_refused and self._closing.is_set():
                        return
                    if is_refused and not turn:
                        logger.error("%d outcomes wait, and are sent again: %s", len(self._pending), error)
                    self._closing.wait(DELIVERY_DELAYS[min(turn, len(DELIVERY_DELAYS) - 1)])
                    turn += 1
                    continue
                logger.warning("%d outcomes are rejected: %s", len(outcomes), error)
            turn = 0
            with self._changed:
                for _ in outcomes:
                    self._pending.popleft()


def build_failure(error: RequestRejected, default: Any, value: Any, safe: str) -> FlagResolutionDetails[Any]:
    """Return the value of the safe action, with the error.

    OpenFeature serves the caller's default where there is an error code. So there is none if that is another value.
    """
    metadata: dict[str, Any] = {"logged": False, "error_code": str(error.code), "message": str(error)}
    if value != default:
        logger.warning("a default is %r and not the safe action's value %r, which is served: %s", default, value, error)
        return FlagResolutionDetails(value, reason=Reason.ERROR, variant=safe, flag_metadata=metadata)
    code = FLAG_ERRORS.get(error.code, FlagError.INVALID_CONTEXT if error.status == 422 else FlagError.GENERAL)
    return FlagResolutionDetails(value, code, str(error), Reason.ERROR, safe, metadata)


def select_columns(flag: Flag, context: EvaluationContext) -> dict[str, Any]:
    """Return the attributes that the experiment declares; dates as ISO text."""
    given = context.attributes.items()
    return {k: v.isoformat() if isinstance(v, date) else v for k, v in given if k in (flag.columns or ())}


def build_metadata(decision: DecisionResponse) -> dict[str, bool | int | float | str]:
    """Return what a decision says, flat: OpenFeature's metadata hold no mappings."""
    metadata: dict[str, Any] = {
        "decision_id": decision.decision_id,
        "logged": decision.logged,
        "mode": decision.mode,
        "version": decision.version,
        "snapshot": decision.snapshot,
        "probability": decision.probabilities.get(decision.action),
        "message": decision.message,
        "estimated_reward": decision.estimated_reward,
    }
    for name, limit in decision.limits.items():
        metadata |= {f"limits.{name}.{part}": value for part, value in limit.items()}
    return {name: value for name, value in metadata.items() if isinstance(value, bool | int | float | str)}
