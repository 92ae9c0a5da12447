"""POST decisions: one, or a list of them that is answered item by item."""

import msgspec

from stagewise.service.messages import LARGEST_BATCH, Asked, Decided, Refusal
from stagewise.service.records import NEW, Settled
from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import Answer, Call, Quick, Refused, answer
from stagewise.service.web.refusing import AGAIN, in_words

_one = msgspec.json.Decoder(Asked)
_many = msgspec.json.Decoder(list[msgspec.Raw])


async def decide(call: Call) -> Answer:
    """Decide for one user, or for many."""
    if is_list(call.body):
        return await _decide_all(call)
    asked = _one.decode(call.body)
    decided = await call.desk.decide(call.words[0], asked)
    return _told(decided, unwritten=not decided.logged and not asked.dry_run)


def quick_decision(call: Call) -> Quick | None:
    """Return what to write for one user, and what to say then."""
    if is_list(call.body):
        return None
    asked = _one.decode(call.body)
    if asked.dry_run:
        return None
    desk = call.desk
    made = desk.make(desk.experiment(call.words[0]), asked)

    def say(settled: Settled | StoreDown) -> Answer | None:
        if isinstance(settled, StoreDown):
            return _told(desk.unlogged(made, str(settled)), unwritten=True)
        return answer(desk.written(made)) if settled.verdict == NEW else None

    return Quick(made.ask, say)


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
    return body[:1] == b"[" or body.lstrip(b" \t\r\n")[:1] == b"["


def items_of(call: Call) -> list[msgspec.Raw]:
    """Return the items of a batch, each as it was sent."""
    items = _many.decode(call.body)
    if len(items) > LARGEST_BATCH:
        raise Refused(422, f"there are {len(items)} items; a batch has at most {LARGEST_BATCH}")
    if items:
        call.counts_as(len(items))
    return items
