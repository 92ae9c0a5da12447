"""What a route is given and what it returns."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from stagewise.problem.words import LONGEST, one_line
from stagewise.service.keys import Holder, Keys
from stagewise.service.messages import Refusal
from stagewise.service.records import Ask, Settled
from stagewise.service.store.store import StoreDown

if TYPE_CHECKING:
    from stagewise.service.desk import Desk
    from stagewise.service.web.rates import Buckets

JSON = b"application/json"
LARGEST_BODY = 1 << 20  # bytes, where a route says nothing else
Headers = tuple[tuple[bytes, bytes], ...]

_encoded = msgspec.json.Encoder(order="deterministic").encode  # the same answer has the same bytes


class Call(NamedTuple):
    """A request that came through the door: who asks for what."""

    desk: "Desk"
    keys: Keys
    buckets: "Buckets"
    holder: Holder
    words: tuple[str, ...]
    """What stands in the path where the route has {names}, in their order."""
    query: bytes = b""
    body: bytes = b""
    serves: str = ""
    """The experiment that Personalizer's routes are for; empty: the only one."""

    def counts_as(self, calls: int) -> None:
        """Take what a batch takes beyond one call from the key's bucket."""
        self.buckets.take(self.holder.name, calls - 1, time.monotonic())


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: Headers = ()


class Asking(Protocol):
    """Something that one row of the log is wanted for."""

    @property
    def ask(self) -> Ask:
        """The row of the log that is asked for."""


class Quick(Protocol):
    """A route's short way, for requests that need one row of the log: read each, ask for all, answer each."""

    def read(self, desk: "Desk", words: tuple[str, ...], body: bytes) -> Any:
        """Return what is asked, with what stands in the path; None, or any error: this one goes the long way."""

    def make(self, read: Sequence[Any]) -> Sequence[Asking | None]:
        """Return what is to be written for those that came together; None: that one goes the long way."""

    def say(self, made: Any, settled: Settled | StoreDown) -> Answer | None:
        """Return the answer, now that it is settled; None: it goes the long way."""


class Refused(Exception):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: int, sentence: str, headers: Headers = ()) -> None:
        super().__init__(one_line(sentence, LONGEST))
        self.status, self.headers = status, headers


def answer(value: Any, status: int = 200) -> Answer:
    """Return a value as JSON."""
    return Answer(status, _encoded(value))


def plain_refusal(status: int, sentence: str) -> Any:
    """Return what a refusal looks like on our own routes."""
    return Refusal(sentence)
