"""Agent files: JSON with a version and a digest; floats are restored to the bit."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.agent_file_pending import PendingState, decode_pending, encode_pending, parse_count
from stagewise.agent.drift_test import check_marks
from stagewise.agent.outcome_queue import ORDERS
from stagewise.agent.seeding import check_name
from stagewise.agent.segment_summary import list_segment_names
from stagewise.agent.statistics import Statistics
from stagewise.engine.compile import Floats
from stagewise.files.atomic_write import compute_sha256
from stagewise.files.paths import format_error
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.policy import check_policy_protocol
from stagewise.policies.policy_encoding import check_kind, decode_value, encode_value
from stagewise.policies.problem_diff import diff_problems
from stagewise.problem.checks import check_choice, check_seed
from stagewise.problem.context import hash_segment
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.formatting import format_path, safe_repr

FORMAT, VERSION = "stagewise-agent", 5


class SavedAgent(NamedTuple):
    """The content of an agent file."""

    policy: BasePolicy
    memory: Floats
    seed: int
    round: int
    order: Any  # Order
    pending: PendingState
    generation: int  # the number of saves
    name: str
    former_prefixes: dict[str, int]  # id prefixes of former names, and the round at which each ended
    learned: int  # the number of updates of the memory
    statistics: Statistics


def encode_agent(saved: SavedAgent, stamp: Mapping[str, Any]) -> bytes:
    """Return the bytes of an agent file, with a digest at the end."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "policy": encode_value(saved.policy),
        **stamp,
        "seed": saved.seed,
        "name": saved.name,
        "former_prefixes": saved.former_prefixes,
        "round": saved.round,
        "learned": saved.learned,
        "memory": saved.memory.tolist(),
        "order": saved.order,
        **encode_pending(saved.policy, saved.pending),
        "statistics": saved.statistics.to_dict(),
        "segments": list_segment_names(saved.policy, saved.memory),
    }
    try:  # piece by piece, so that other threads can decide meanwhile
        text = "".join(json.JSONEncoder(allow_nan=False).iterencode(content))
    except ValueError:
        raise InvalidProblem(
            ErrorCode.NOT_FINITE,
            "the agent cannot be saved, because its state holds numbers that are not finite; start a "
            "new agent with rescaled rewards and costs",
        ) from None
    return f'{text[:-1]}, "digest": "{compute_sha256(text.encode())}"}}'.encode()


def compute_digest(content: Mapping[str, Any]) -> str:
    """Return the digest of a file's content without its digest field."""
    covered = {name: value for name, value in content.items() if name != "digest"}
    return compute_sha256(json.dumps(covered).encode())


def decode_agent(path: Path, raw: bytes) -> SavedAgent:
    """Return the content of an agent file, fully validated, or raise `InvalidFile`."""
    try:
        content = json.loads(raw.decode())
        check_integrity(path, content)
    except InvalidFile:
        raise
    except ValueError as error:  # not UTF-8, not JSON, or a number of thousands of digits
        if path.suffix.lower() == ".toml":
            raise InvalidFile(
                ErrorCode.FILE_WRONG_KIND,
                "{path} declares a problem and is not a saved agent; use sw.Agent(sw.Problem.load(path))",
                path=format_path(path),
            ) from None
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT,
            "{path} is corrupt: {error}; restore it from a backup",
            path=format_path(path),
            error=format_error(error),
        ) from None
    except RecursionError:
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT,
            "{path} is corrupt, because it is nested too deeply; restore it from a backup",
            path=format_path(path),
        ) from None
    try:
        saved = parse_agent(content)
        fits = saved.policy.fits(saved.memory) and bool(np.isfinite(saved.memory).all())
    except StagewiseError as error:
        raise InvalidFile(
            ErrorCode.FILE_INVALID,
            "{path} holds invalid settings: {error}; start a new agent and give it the log (learn_log)",
            path=format_path(path),
            error=format_error(error),
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT,
            "{path} lacks a field or has one of the wrong type: {error}",
            path=format_path(path),
            error=format_error(error),
        ) from None
    if not fits:
        raise InvalidFile(
            ErrorCode.STATE_MISMATCH, "{path} holds a state that does not match its policy", path=format_path(path)
        )
    return saved


def check_integrity(path: Path, content: Any) -> None:
    """Raise unless the content is an agent file of this version with a valid digest."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "{path} is not a saved agent, because its format is not {format!r}",
            path=format_path(path),
            format=FORMAT,
        )
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise InvalidFile(
            ErrorCode.FILE_OF_OTHER_VERSION,
            "{path} has version {version}; this stagewise reads version {supported}, so use the "
            "stagewise that wrote it, or start a new agent and give it the log (learn_log)",
            path=format_path(path),
            version=safe_repr(version),
            supported=VERSION,
        )
    if "digest" not in content:
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT,
            "{path} is corrupt, because it has no digest; restore it from a backup",
            path=format_path(path),
        )
    if content["digest"] != compute_digest(content):
        raise InvalidFile(
            ErrorCode.DIGEST_MISMATCH,
            "{path} was changed after it was saved, because its digest does not match; restore it from a backup",
            path=format_path(path),
        )


def parse_agent(content: dict[str, Any]) -> SavedAgent:
    """Return the parsed values of an agent file."""
    policy = decode_value(content["policy"])
    if not isinstance(policy, BasePolicy):
        raise InvalidProblem(ErrorCode.WRONG_TYPE, "the stored policy is not a policy of stagewise")
    end = parse_count(content["round"], "round")
    memory, order = parse_memory(content["memory"]), check_choice(content["order"], ORDERS, "order")
    generation, seed = parse_count(content["generation"], "generation"), check_seed(content["seed"])
    pending, name = decode_pending(policy, content, order, end), check_name(content["name"], "name")
    former = {str(prefix): parse_count(r, "round", end + 1) for prefix, r in content["former_prefixes"].items()}
    learned, statistics = parse_count(content["learned"], "learned"), Statistics.from_dict(content["statistics"])
    for segment in content["segments"]:
        hash_segment(str(segment))  # registers the segment's name
    if policy.fits(memory):  # else the caller rejects the file
        check_marks(policy, memory, statistics)
    return SavedAgent(policy, memory, seed, end, order, pending, generation, name, former, learned, statistics)


def parse_memory(value: Any) -> Floats:
    """Return the memory's numbers; `check_array` would also reject very large ones."""
    try:
        memory = np.array(value)
    except ValueError:  # rows of several lengths
        memory = np.array(None)
    if memory.dtype.kind not in "fiu":
        raise InvalidProblem(ErrorCode.NOT_FINITE, "the stored state must be a list of finite numbers")
    return memory.astype(np.float64)


def check_same_policy(path: Path, saved: BasePolicy, given: Any) -> None:
    """Raise if the saved policy is not the given one; values count, not types: 0 is 0.0, and (1, 2) is [1, 2]."""
    check_policy_protocol(given)
    check_kind(given)
    if type(saved) is not type(given):
        one, other = (type(p).__name__ if p.problem is None else "a problem" for p in (saved, given))
        raise InvalidFile(
            ErrorCode.PROBLEM_MISMATCH,
            "{path} was saved by an agent of {one}, and the one given is {other}",
            path=format_path(path),
            one=one,
            other=other,
        )
    if saved.problem is not None:
        for what, instead in diff_problems(saved.problem, given.problem):
            raise InvalidFile(
                ErrorCode.PROBLEM_MISMATCH,
                "{path} was saved under another problem: {what}; {instead}",
                path=format_path(path),
                what=what,
                instead=instead,
            )
        return
    ours, theirs = saved.thresholds, given.thresholds
    same = ours.names == theirs.names and np.array_equal([ours.signs, ours.values], [theirs.signs, theirs.values])
    one, other = encode_value(saved)["settings"], encode_value(given)["settings"]
    for name in one:
        if one[name] != other[name] and not (name == "threshold" and same):
            raise InvalidFile(
                ErrorCode.PROBLEM_MISMATCH,
                "{path} was saved with {name} = {saved}, and the given policy has {given}; its state does "
                "not carry over, so start a new agent and give it the log (learn_log)",
                path=format_path(path),
                name=name,
                saved=safe_repr(getattr(saved, name)),
                given=safe_repr(getattr(given, name)),
            )
    if ours.names != theirs.names:
        raise InvalidFile(
            ErrorCode.PROBLEM_MISMATCH,
            "{path} was saved with limits in the order {names}, and the given policy has {names_2}; "
            "keep the order, since costs are given by position",
            path=format_path(path),
            names=safe_repr(list(ours.names)),
            names_2=safe_repr(list(theirs.names)),
        )
