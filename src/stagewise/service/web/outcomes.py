"""POST outcomes: signals by name, apart, late, in any order, repeated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from stagewise.problem.errors import InvalidOutcome, StagewiseError
from stagewise.problem.words import shown
from stagewise.service.experiment import Experiment
from stagewise.service.messages import OUTCOME_WORDS, Id, Outcome, Refusal
from stagewise.service.records import NEW, SHOWN, Ask, Settled
from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import Answer, Call, answer
from stagewise.service.web.decisions import is_list, items_of
from stagewise.service.web.refusing import in_words

if TYPE_CHECKING:
    from stagewise.service.desk import Desk

Said = dict[Annotated[str, Meta(max_length=200)], bool | float | str | None]

_one = msgspec.json.Decoder(Said)


async def learn(call: Call) -> Answer:
    """Take the outcome of one decision, or of many."""
    if is_list(call.body):
        return await _learn_all(call)
    return answer(await call.desk.learn(call.words[0], outcome_of(_one.decode(call.body))))


class Heard(NamedTuple):
    """An outcome that is told by itself."""

    desk: "Desk"
    ours: Experiment
    outcome: Outcome
    ask: Ask


class QuickOutcomes:
    """How a single outcome is taken when it comes alone (see `call.Quick`)."""

    def read(self, desk: "Desk", words: tuple[str, ...], body: bytes) -> Heard | None:
        """Return the outcome that a body tells; None: it tells several."""
        if is_list(body):
            return None
        ours, outcome = desk.experiment(words[0]), outcome_of(_one.decode(body))
        return Heard(desk, ours, outcome, desk.telling(ours, outcome))

    def make(self, read: Sequence[Heard]) -> Sequence[Heard]:
        """Return the outcomes as they are: nothing has to be decided."""
        return read

    def say(self, made: Heard, settled: Settled | StoreDown) -> Answer | None:
        """Return what became of an outcome that is written."""
        if isinstance(settled, StoreDown) or settled.verdict != NEW:
            return None
        return answer(made.desk.told(made.ours, made.outcome, settled))


async def _learn_all(call: Call) -> Answer:
    read = [_read(item) for item in items_of(call)]
    told = iter(await call.desk.learn_all(call.words[0], [item for item in read if isinstance(item, Outcome)]))
    return answer([item if isinstance(item, Refusal) else next(told) for item in read])


def _read(item: msgspec.Raw) -> Outcome | Refusal:
    try:
        return outcome_of(_one.decode(item))
    except StagewiseError as error:
        return Refusal(str(error))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Refusal(in_words(error)[1])


def outcome_of(said: dict[str, Any]) -> Outcome:
    """Return the outcome that a body tells.

    >>> outcome_of({"decision_id": "a", "click": True, "shown": False})
    Outcome(decision_id='a', values={'click': 1.0, 'shown': False}, outcome_id=None)
    """
    values = {name: _number(name, value) for name, value in said.items() if name not in OUTCOME_WORDS}
    if SHOWN in said:
        if not isinstance(said[SHOWN], bool):
            raise InvalidOutcome(f"shown is {shown(said[SHOWN])}; it must be true or false")
        values[SHOWN] = said[SHOWN]
    if not values:
        raise InvalidOutcome("the outcome tells nothing; it needs a signal by name, or shown")
    own = said.get("outcome_id")
    return Outcome(_id(said, "decision_id"), values, None if own is None else _id(said, "outcome_id"))


def _number(name: str, value: Any) -> float:
    if not isinstance(value, bool | float):
        raise InvalidOutcome(f"the {name!r} is {shown(value)}; it must be a number, true or false")
    return float(value)


def _id(said: dict[str, Any], name: str) -> str:
    try:
        return msgspec.convert(said.get(name), Id)
    except msgspec.ValidationError:
        raise InvalidOutcome(
            f"the {name} is {shown(said.get(name))}; it must be text of 1 to 256 characters, without control characters"
        ) from None
