"""A client of the desk that always has an answer: the desk's, or the safe action with the reason.

It needs nothing but Python, and importing it loads neither NumPy nor Numba.
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import shown
from stagewise.records.reason import Cause, Reason
from stagewise.service.client_unsettled import Unsettled
from stagewise.service.client_wire import Answer, Unreached, Wire
from stagewise.service.client_words import (
    Decision,
    DeskAway,
    DeskRefused,
    Refused,
    Told,
    Wanted,
    asked_of,
    batches,
    encoded,
    refused_of,
    size,
    told_of,
)

__all__ = ["Client", "Decision", "DeskAway", "DeskClient", "DeskRefused", "Refused", "Told", "Wanted"]

UNLOGGED = "unlogged-"  # begins the id of what the desk does not know of
LONGEST = 86_400.0  # seconds, and tries
BUSY = (429, 503)  # try again


class DeskClient:
    """Asks a desk for decisions and tells it what came of them; threads may share one.

    `url` is the desk's, `key` a key to it, `experiment` one of its experiments, and `safe` the action to fall back to.
    A request takes `timeout` seconds at most, whatever the desk sends and however slowly, and `tries` tries, the second
    after a `pause` that doubles with each; only the look-up of a host name is the system's and can take longer. The id
    of a decision is made here, so that a retry is answered with the decision that was logged, and never draws again.
    Where no answer can be read in time, the answer
    is the safe action; in case the desk did log something, it is then told that it was not shown.

    >>> client = DeskClient("http://127.0.0.1:9", key="-", experiment="messages", safe="nothing", timeout=0.1)
    >>> decision = client.decide({"age": 34})
    >>> decision.action, decision.logged, decision.reason, decision.fallback
    ('nothing', False, 'server_unavailable', 'the desk at http://127.0.0.1:9 cannot be reached: Connection refused')
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
            raise StagewiseError(f"safe is {shown(safe)}; it must name the action to fall back to when no desk answers")
        if not isinstance(experiment, str) or not experiment.isprintable() or not experiment:
            raise StagewiseError(f"experiment is {shown(experiment)}; it must be the name of one, as `serve` prints it")
        for name, value, least in (("timeout", timeout, 1e-3), ("tries", tries, 1), ("pause", pause, 0.0)):
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            if not plain or not least <= value <= LONGEST or (name == "tries" and value != int(value)):
                raise StagewiseError(f"{name} is {shown(value)}; it must be a number from {least:g} to {LONGEST:g}")
        self.safe, self.timeout, self.tries, self.pause = safe, float(timeout), int(tries), float(pause)
        self._wire = Wire(url, key)
        self._path = f"{self._wire.path}/v1/{quote(experiment, safe='')}"
        self._unsettled = Unsettled(self._tell_not_shown)

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        only: Sequence[str] | None = None,
        decision_id: str | None = None,
    ) -> Decision:
        """Return what to do for a user; DeskRefused where what is asked cannot be answered (4xx).

        `context` is what is known of the user, by name, and `only` names the actions on offer, where not all are. Asked
        again with the same `decision_id`, the desk answers what it decided the first time.
        """
        asked = asked_of(Wanted(context or {}, only, decision_id))
        answer = self._exchange("/decisions", asked)
        if answer.status == 200 and isinstance(answer.content, dict):
            return self._decided(answer.content, asked)
        return self._fallen(asked, answer)

    def decide_all(self, wanted: Iterable[Mapping[str, Any] | Wanted]) -> list[Decision | Refused]:
        """Return what to do for many: `wanted` has for each a context, or Wanted(context, only, decision_id).

        They are sent up to 1000 at a time; `timeout` is for each of these requests.
        """
        asked = [asked_of(each if isinstance(each, Wanted) else Wanted(each)) for each in wanted]
        return [decision for batch in batches(asked, size) for decision in self._decide_batch(batch)]

    def learn(
        self, decision: "str | Decision", *, shown: bool | None = None, outcome_id: str | None = None, **signals: float
    ) -> Told:
        """Tell what came of a decision: `signals` by name, as they become known, as in `learn(id, click=True)`.

        `shown=False` says that it was not carried out. Telling the same again changes nothing, and a retry with the
        same `outcome_id` is answered the same. Of a decision that was not logged nothing is told. DeskRefused: the
        desk says no; DeskAway: it did not answer.
        """
        id_ = decision if isinstance(decision, str) else decision.decision_id
        if id_.startswith(UNLOGGED):
            return Told(id_)
        told = {"decision_id": id_, **signals}
        told |= {} if shown is None else {"shown": shown}
        told |= {} if outcome_id is None else {"outcome_id": outcome_id}
        answer = self._exchange("/outcomes", told)
        if answer.status != 200 or not isinstance(answer.content, dict):
            raise DeskAway(f"the outcome of {id_} is not told: {answer.words}")
        return told_of(answer.content)

    def learn_all(self, outcomes: Iterable[Mapping[str, Any]]) -> list[Told | Refused]:
        """Tell many outcomes, each a mapping with "decision_id" and signals; one answer for each."""
        rows = [dict(outcome) for outcome in outcomes]
        told: list[Told | Refused] = [Told(str(row.get("decision_id"))) for row in rows]
        known = [i for i, row in enumerate(rows) if not str(row.get("decision_id")).startswith(UNLOGGED)]
        for places in batches(known, lambda i: size(rows[i])):
            answer = self._exchange("/outcomes", [rows[i] for i in places])
            if answer.status != 200 or not isinstance(answer.content, list) or len(answer.content) != len(places):
                raise DeskAway(f"outcomes of {len(places)} decisions are not told: {answer.words}")
            for i, content in zip(places, answer.content, strict=True):
                told[i] = refused_of(content) if "error" in content else told_of(content)
        return told

    def not_shown(self, decision: "str | Decision") -> Told:
        """Tell that a decision was not carried out: nothing is learned from it."""
        return self.learn(decision, shown=False)

    def close(self) -> None:
        """Tell what is still to be told, for a second at most, and let go of all connections."""
        self._unsettled.close()
        self._wire.close()

    def __enter__(self) -> "DeskClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide_batch(self, batch: Sequence[dict[str, Any]]) -> Iterator[Decision | Refused]:
        answer = self._exchange("/decisions", batch)
        whole = isinstance(answer.content, list) and len(answer.content) == len(batch)
        if answer.status in (200, 503) and whole:  # 503: some of them are not logged, and say so
            for content, asked in zip(answer.content, batch, strict=True):
                bad = isinstance(content, dict) and "error" in content
                yield refused_of(content) if bad else self._decided(content, asked)
        else:
            yield from (self._fallen(asked, answer) for asked in batch)

    def _exchange(self, route: str, content: Any) -> Answer:
        """Send until something is answered that another try would not change; 4xx are raised."""
        body = encoded(content)
        until, answer = time.monotonic() + self.timeout, Answer(0, None, "there was no time to ask", sent=False)
        sent = False
        for turn in range(self.tries):
            if turn:  # half of the pause is by chance, so that many clients do not come back at once
                time.sleep(min(self.pause * 2**turn * random.uniform(0.5, 1.0), max(0.0, until - time.monotonic())))
            if time.monotonic() >= until:
                break
            left = until - time.monotonic()  # a try that hangs leaves half of it to the next one
            answer = self._wire.post(self._path + route, body, until - (left / 2.0 if turn < self.tries - 1 else 0.0))
            sent = sent or answer.sent
            if answer.status and answer.status not in BUSY:
                break
        if 400 <= answer.status < 500 and answer.status not in BUSY:
            raise DeskRefused(answer.words, answer.status)
        return answer._replace(sent=sent)

    def _decided(self, content: Any, asked: Mapping[str, Any]) -> Decision:
        """Return the desk's answer, or the safe action where it cannot be read."""
        try:
            decision = Decision(**{name: content[name] for name in Decision._fields if name in content})
        except (TypeError, KeyError):
            decision = None
        if decision is None or not isinstance(decision.action, str) or not isinstance(decision.probabilities, dict):
            return self._fallen(asked, Answer(0, None, "the desk's answer cannot be read"))
        if not decision.logged:
            words = decision.fallback or "the desk did not log it"
            return self._fallen(asked, Answer(0, {"reason": decision.reason, "fallback": words}, words))
        self._unsettled.discard(decision.decision_id)
        return decision

    def _fallen(self, asked: Mapping[str, Any], answer: Answer) -> Decision:
        """Return the safe action; whatever the desk may have logged was not shown."""
        if answer.sent:
            self._unsettled.add(asked["decision_id"])
        content = answer.content if isinstance(answer.content, dict) else {}
        cause = Cause.of(Reason.SERVER_UNAVAILABLE, error=answer.words)
        words, reason = content.get("fallback") or cause.sentence, content.get("reason") or str(cause.reason)
        id_ = f"{UNLOGGED}{asked['decision_id']}"
        return Decision(id_, self.safe, {self.safe: 1.0}, fallback=words, logged=False, reason=reason)

    def _tell_not_shown(self, ids: Sequence[str]) -> list[str]:
        """Return those of these decisions that the desk does not know, or not yet."""
        answer = self._exchange("/outcomes", [{"decision_id": id_, "shown": False} for id_ in ids])
        if answer.status != 200 or not isinstance(answer.content, list) or len(answer.content) != len(ids):
            raise Unreached(answer.words)
        return [id_ for id_, content in zip(ids, answer.content, strict=True) if "error" in content]


Client = DeskClient
