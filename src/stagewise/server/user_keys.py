"""Contexts that can be erased: the request of a named user is kept under a key of that user, which can be destroyed.

    request in the log = {"user_key": id of the key, "sealed": nonce ‖ AES-256-GCM(key, request)}

Codes and seals cover the row as it is in the log, so they stay valid. A request whose key is destroyed has no context.
"""

import base64
import hmac
import os
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import DECISION, Event, encode_canonical
from stagewise.server.messages import UnsupportedRequest
from stagewise.server.store.base import Store

USERS = "users"  # the secret under which names of users are coded
MARK = b'"user_key"'  # in the body of each row that has such a request
NONCE_BYTES = 12
MAX_CACHED = 10_000

SELECT_ACTIVE = "SELECT id, content FROM user_keys WHERE user_digest = ? AND is_retired = 0"
SELECT_OF_USER = "SELECT id FROM user_keys WHERE user_digest = ?"
SELECT_KEY = "SELECT content FROM user_keys WHERE id = ?"
INSERT_KEY = "INSERT INTO user_keys (id, user_digest, content, is_retired) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
RETIRE_KEYS = "UPDATE user_keys SET is_retired = 1 WHERE user_digest = ?"
DELETE_KEY = "DELETE FROM user_keys WHERE id = ?"


class UserKey(NamedTuple):
    """A key, by its id."""

    id_: str
    content: bytes


class UserKeys:
    """The keys of a store; those that were used last are kept in memory until controls change."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._secret = b""
        self._cached: dict[str, UserKey] = {}
        self._control = -1

    def compute_digest(self, user: str) -> bytes:
        """Return the code of a user's name."""
        self._secret = self._secret or self.store.secret(USERS, secrets.token_bytes(32))
        return hmac.digest(self._secret, user.encode(), "sha256")

    def get_keys(self, users: Iterable[str], control: int) -> dict[str, UserKey]:
        """Return the keys of users, durable before they are used; new ones are made.

        An erasure is a control: a decision that was made with older ones is refused, so no key is used after it.
        """
        if control != self._control or len(self._cached) > MAX_CACHED:
            self._cached, self._control = {}, control
        wanted = set(users)
        for user in wanted - self._cached.keys():
            digest = self.compute_digest(user)
            rows = self.store._all(SELECT_ACTIVE, digest)
            if not rows:
                self.store._change((INSERT_KEY, (os.urandom(12).hex(), digest, os.urandom(32))))
                rows = self.store._all(SELECT_ACTIVE, digest)
            ((id_, content),) = rows
            self._cached[user] = UserKey(id_, bytes(content))
        return {user: self._cached[user] for user in wanted}


def build_cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        text = "contexts of named users need the package cryptography; pip install 'stagewise[erasure]'"
        raise UnsupportedRequest(ErrorCode.MISSING_DEPENDENCY, text) from None
    return AESGCM(key)


def seal_request(request: dict[str, Any], key: UserKey, id_: str) -> dict[str, Any]:
    """Return the request of a decision as the log keeps it; whether it is deferred stays readable."""
    nonce = os.urandom(NONCE_BYTES)
    content = nonce + build_cipher(key.content).encrypt(nonce, encode_canonical(request), id_.encode())
    sealed = {"user_key": key.id_, "sealed": base64.b64encode(content).decode()}
    return sealed | ({"deferred": True} if request.get("deferred") else {})


def open_rows(store: Store, events: Sequence[Event]) -> list[Event]:
    """Return rows with the requests of their users; one whose key is destroyed has none."""
    opened, keys = list(events), dict[str, bytes | None]()
    for i, event in enumerate(events):
        if event.kind == DECISION and MARK in event.body:
            body = msgspec.json.decode(event.body)
            request = body["request"]
            if "user_key" not in request:  # somebody's segment
                continue
            id_ = request["user_key"]
            if id_ not in keys:
                keys[id_] = next((bytes(content) for (content,) in store._all(SELECT_KEY, id_)), None)
            key, deferred = keys[id_], {"deferred": True} if request.get("deferred") else {}
            body["request"] = {"context": {}, "erased": True, **deferred}
            if key is not None:
                content = base64.b64decode(request["sealed"])
                cipher, nonce = build_cipher(key), content[:NONCE_BYTES]
                body["request"] = msgspec.json.decode(cipher.decrypt(nonce, content[NONCE_BYTES:], event.key.encode()))
            opened[i] = event._replace(body=encode_canonical(body))
    return opened


def is_erased(event: Event) -> bool:
    """Return whether an opened row has lost its request."""
    return b'"erased":true' in event.body and bool(msgspec.json.decode(event.body)["request"].get("erased"))
