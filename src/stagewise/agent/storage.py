"""Agent files: JSON with a version and a digest, written atomically; floats are restored to the bit.

Two agents that continue from one file draw the same random numbers, and each overwrites what the other learned. Every
save therefore has a number and a writer, and an agent replaces only files that it loaded or saved, and that nobody
changed since.
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.layout import ELSEWHERE
from stagewise.files.paths import compute_sha256, format_error, write_parts
from stagewise.policies.policy import BasePolicy, PlayedAction, check_policy_protocol
from stagewise.policies.saved_policies import check_kind, diff_problems, encode_value
from stagewise.problem.checks import check_integer, check_number
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem
from stagewise.problem.formatting import format_path, safe_repr
from stagewise.problem.safe_action import decode_round_safe_action, encode_round_safe_action

FORMAT, VERSION = "stagewise-agent", 8
PART_SIZE = 2**16  # pieces of JSON that are joined
ENCODER = json.JSONEncoder(allow_nan=False, default=np.ndarray.tolist)


class Ownership:
    """The number of saves of an agent, and the files it knows."""

    def __init__(self, generation: int = 0, known: dict[str, tuple[str, int]] | None = None) -> None:
        self.generation, self.writer = generation, secrets.token_hex(8)
        self.known = known or {}  # by path: the fingerprint of the file as last seen, and the agent's round then

    def clone(self) -> "Ownership":
        """Return a copy for a copy of the agent, which is another writer."""
        return Ownership(self.generation, dict(self.known))

    def learn(self, path: Path, content: bytes, round_: int) -> None:
        """Remember the content of a file."""
        self.known[os.path.realpath(path)] = compute_sha256(content), round_

    def write(self, path: Path, parts: Sequence[bytes], round_: int, overwrite: bool) -> None:
        """Write the next save, if the path is new or holds a file of this agent."""

        def check(content_now: bytes) -> None:
            digest, round_read = self.known.get(os.path.realpath(path), (None, 0))
            if digest is None:
                template = (
                    "{path} exists, and this agent neither loaded nor saved it; save to another path, or "
                    "give overwrite=True to replace it"
                )
                raise InvalidFile(ErrorCode.FILE_EXISTS, template, path=format_path(path))
            if digest != compute_sha256(content_now):
                template = (
                    "{path} was changed by another process after this agent read it at round {round}; it is "
                    "not overwritten, since both may have used the same random numbers, so load it again or "
                    "save to another path"
                )
                raise InvalidFile(ErrorCode.FILE_CHANGED, template, path=format_path(path), round=round_read)

        write_parts(path, parts, None if overwrite else check)
        self.generation += 1
        self.known[os.path.realpath(path)] = compute_sha256(*parts), round_


def encode_file(fields: Mapping[str, Any]) -> list[bytes]:
    """Return the bytes of an agent file in parts, with a digest at the end."""
    try:
        parts = list(iter_json({"format": FORMAT, "version": VERSION, **fields}))
    except ValueError:
        raise InvalidProblem(
            ErrorCode.NOT_FINITE,
            "the agent cannot be saved, because its state holds numbers that are not finite; start a "
            "new agent with rescaled rewards and costs",
        ) from None
    return [*parts[:-1], f', "digest": "{compute_sha256(*parts)}"}}'.encode()]


def iter_json(content: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield JSON piece by piece, so that other threads can decide meanwhile; bytes are text without escapes."""
    for count, (name, value) in enumerate(content.items()):
        yield f"{', ' if count else '{'}{json.dumps(name)}: ".encode()
        if isinstance(value, bytes):
            yield from (b'"', value, b'"')
        elif isinstance(value, dict) and any(isinstance(entry, bytes | dict) for entry in value.values()):
            yield from iter_json(value)
        else:
            texts = ENCODER.iterencode(value)
            while part := "".join(islice(texts, PART_SIZE)):
                yield part.encode()
    yield b"}"


def compute_digest(content: Mapping[str, Any]) -> str:
    """Return the digest of a file's content without its digest field."""
    covered = {name: value for name, value in content.items() if name != "digest"}
    return compute_sha256(json.dumps(covered).encode())


def decode_file(path: Path, raw: bytes) -> dict[str, Any]:
    """Return the content of an agent file of this version with a valid digest, or raise `InvalidFile`."""

    def corrupt(why: str, code: ErrorCode = ErrorCode.FILE_CORRUPT) -> InvalidFile:
        return InvalidFile(code, "{path} is corrupt: {why}; restore it from a backup", path=format_path(path), why=why)

    try:
        content: Any = json.loads(raw.decode())
    except ValueError as error:  # not UTF-8, not JSON, or a number of thousands of digits
        if path.suffix.lower() == ".toml":
            template = "{path} declares a problem and is not a saved agent; use sw.Agent(sw.Problem.load(path))"
            raise InvalidFile(ErrorCode.FILE_WRONG_KIND, template, path=format_path(path)) from None
        raise corrupt(format_error(error)) from None
    except RecursionError:
        raise corrupt("it is nested too deeply") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        template = "{path} is not a saved agent, because its format is not {format!r}"
        raise InvalidFile(ErrorCode.FILE_WRONG_KIND, template, path=format_path(path), format=FORMAT)
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        template = (
            "{path} has version {version}; this stagewise reads version {supported}, so use the "
            "stagewise that wrote it, or start a new agent and give it the log (learn_log)"
        )
        data = {"path": format_path(path), "version": safe_repr(version), "supported": VERSION}
        raise InvalidFile(ErrorCode.FILE_OF_OTHER_VERSION, template, **data)
    if "digest" not in content:
        raise corrupt("it has no digest")
    if content["digest"] != compute_digest(content):
        raise corrupt("it was changed after it was saved, as its digest does not match", ErrorCode.DIGEST_MISMATCH)
    return content


def parse_count(value: Any, name: str, end: int = 2**62) -> int:
    """Return an integer in [0, end)."""
    return check_integer(value, name, f"from 0 to {end - 1}", 0, end - 1)


def parse_memory(value: Any) -> Floats:
    """Return the memory's numbers; `check_array` would also reject very large ones."""
    try:
        memory = np.array(value)
    except ValueError:  # rows of several lengths
        memory = np.array(None)
    if memory.dtype.kind not in "fiu":
        raise InvalidProblem(ErrorCode.NOT_FINITE, "the stored state must be a list of finite numbers")
    return memory.astype(np.float64)


def encode_played(played: PlayedAction) -> list[Any]:
    """Return a played action as `decode_played` reads it."""
    entry = [np.asarray(played.action).tolist(), int(played.ray), float(played.step)]
    return entry if played.safe is None else [*entry, encode_round_safe_action(played.safe)]


def decode_played(policy: BasePolicy, action: Any, index: Any, step: Any, safe: Any = None) -> PlayedAction:
    """Return a played action, checked against the policy and the round's safe action."""
    row = policy.check_logged_actions([action])[0]
    ray = parse_count(index - ELSEWHERE, "index") + ELSEWHERE
    safe_action = policy.check_round_safe_action(decode_round_safe_action(safe))
    return PlayedAction(row if isinstance(action, list) else int(row), ray, check_number(step, "step"), safe_action)


def check_same_policy(path: Path, saved: BasePolicy, given: Any) -> None:
    """Raise if the saved policy is not the given one; values count, not types: 0 is 0.0, and (1, 2) is [1, 2]."""
    check_policy_protocol(given)
    check_kind(given)

    def mismatch(template: str, **details: Any) -> InvalidFile:
        return InvalidFile(
            ErrorCode.PROBLEM_MISMATCH, "{path} was saved " + template, path=format_path(path), **details
        )

    if type(saved) is not type(given):
        one, other = (type(p).__name__ if p.problem is None else "a problem" for p in (saved, given))
        raise mismatch("by an agent of {one}, and the one given is {other}", one=one, other=other)
    if saved.problem is not None:
        for what, instead in diff_problems(saved.problem, given.problem):
            raise mismatch("under another problem: {what}; {instead}", what=what, instead=instead)
        return
    ours, theirs = saved.thresholds, given.thresholds
    same = ours.names == theirs.names and np.array_equal([ours.signs, ours.values], [theirs.signs, theirs.values])
    one, other = encode_value(saved)["settings"], encode_value(given)["settings"]
    for name in one:
        if one[name] != other[name] and not (name == "threshold" and same):
            template = (
                "with {name} = {saved}, and the given policy has {given}; its state does not carry over, so start a "
                "new agent and give it the log (learn_log)"
            )
            data = {"name": name, "saved": safe_repr(getattr(saved, name)), "given": safe_repr(getattr(given, name))}
            raise mismatch(template, **data)
    if ours.names != theirs.names:
        template = (
            "with limits in the order {names}, and the given policy has {given}; keep the order, since costs are "
            "given by position"
        )
        raise mismatch(template, names=safe_repr(list(ours.names)), given=safe_repr(list(theirs.names)))
