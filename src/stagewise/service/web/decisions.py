"""POST decisions: one, or a list of them that is answered item by item."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stagewise.service.experiment import Experiment
from stagewise.service.ids import fresh_id
from stagewise.service.messages import LARGEST_BATCH, Asked, Decided, Refusal
from stagewise.service.records import NEW, Settled
from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import Answer, Call, Refused, answer
from stagewise.service.web.refusing import AGAIN, in_words

if TYPE_CHECKING:
    from stagewise.service.deciders import Made
    from stagewise.service.desk import Desk

_one = msgspec.json.Decoder(Asked)
_many = msgspec.json.Decoder(list[msgspec.Raw])


async def decide(call: Call) -> Answer:
    """Decide for one user, or for many."""
    if is_list(call.body):
        return await _decide_all(call)
    asked = _one.decode(call.body)
    decided = await call.desk.decide(call.words[0], asked)
    return _told(decided, unwritten=not decided.logged and not asked.dry_run)


class Wanted(NamedTuple):
    """A decision that is asked for by itself."""

    desk: "Desk"
    ours: Experiment
    id_: str
    asked: Asked


class QuickDecisions:
    """The short way of single decisions; those that came together are decided in one call."""

    def read(self, desk: "Desk", words: tuple[str, ...], body: bytes) -> Wanted | None:
        """Return what is asked."""
        if is_list(body):
            return None
        asked = _one.decode(body)
        ours = desk.experiment(words[0])
        return None if asked.dry_run else Wanted(desk, ours, asked.decision_id or fresh_id(), asked)

    def make(self, read: Sequence[Wanted]) -> "list[Made | None]":
        """Decide for all of them, as far as that is simple."""
        made: list[Made | None] = [None] * len(read)
        for ours in {one.ours for one in read}:
            places = [i for i, one in enumerate(read) if one.ours is ours]
            told = read[0].desk.make_all(ours, [(read[i].id_, read[i].asked) for i in places])
            for i, one in zip(places, told, strict=True):
                made[i] = one
        return made

    def say(self, made: "Made", settled: Settled | StoreDown) -> Answer | None:
        """Return the answer to a decision that is written, or could not be."""
        if isinstance(settled, StoreDown):
            return _told(made.desk.unlogged(made, str(settled)), unwritten=True)
        return answer(made.desk.written(made)) if settled.verdict == NEW else None


async def _decide_all(call: Call) -> Answer:
    """Decide for many: what cannot be read is refused by itself, and the others are decided."""
    read = [_read(item) for item in items_of(call)]
    asked = [item for item in read if isinstance(item, Asked)]
    decided = iter(await call.desk.decide_all(call.words[0], asked))
    said = [item if isinstance(item, Refusal) else next(decided) for item in read]
    pairs = zip(read, said, strict=True)
    lost = any(isinstance(d, Decided) and not d.logged and isinstance(a, Asked) and not a.dry_run for a, d in pairs)
    return _told(said, unwritten=lost)


def _read(item: msgspec.Raw) -> Asked | Refusal:
    try:
        return _one.decode(item)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Refusal(in_words(error)[1])


def _told(said: Decided | list[Decided | Refusal], *, unwritten: bool) -> Answer:
    """Return the answer; what could not be written is the safe action, and 503."""
    return answer(said, 503)._replace(headers=AGAIN) if unwritten else answer(said)


def is_list(body: bytes) -> bool:
    """Say whether a body begins as a list."""
    return body[:1] != b"{" and body.lstrip(b" \t\r\n")[:1] == b"["


def items_of(call: Call) -> list[msgspec.Raw]:
    """Return the items of a batch, each as it was sent."""
    items = _many.decode(call.body)
    if len(items) > LARGEST_BATCH:
        raise Refused(422, f"there are {len(items)} items; a batch has at most {LARGEST_BATCH}")
    if items:
        call.counts_as(len(items))
    return items
