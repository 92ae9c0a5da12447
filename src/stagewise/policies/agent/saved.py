"""An agent as a file: JSON with a version and a digest. Floats survive to the bit."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.files.paths import brief, named
from stagewise.files.whole import fingerprint
from stagewise.kernels.compile import Floats
from stagewise.policies.agent.by_segment import names_met
from stagewise.policies.agent.drift import check_marks
from stagewise.policies.agent.ledger import ORDERS
from stagewise.policies.agent.names import name_of
from stagewise.policies.agent.notes import Notes
from stagewise.policies.agent.saved_waits import Waits, count, waits_content, waits_from
from stagewise.policies.changed import differences
from stagewise.policies.encoded import check_kind, decoded, encoded
from stagewise.policies.learning import Learning
from stagewise.policies.policy import check_verbs
from stagewise.problem.checks import one_of, seed_of, shown
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.naming import number_of

FORMAT, VERSION, LAST = "stagewise-agent", 4, 3


class Saved(NamedTuple):
    """What the file of a saved agent holds."""

    policy: Learning
    memory: Floats
    seed: int
    round: int
    order: Any  # Order
    waits: Waits
    generation: int  # how often it was saved
    name: str
    former: dict[str, int]  # marks of earlier lives, and the round at which each ended
    learned: int  # how often the memory was changed
    notes: Notes  # what its agent counts


def written(saved: Saved, stamp: Mapping[str, Any]) -> bytes:
    """Return a file: the policy and what its agent knows, closed by a digest of all that."""
    told = {
        "format": FORMAT,
        "version": VERSION,
        "policy": encoded(saved.policy),
        **stamp,
        "seed": saved.seed,
        "name": saved.name,
        "former": saved.former,
        "round": saved.round,
        "learned": saved.learned,
        "memory": saved.memory.tolist(),
        "order": saved.order,
        **waits_content(saved.policy, saved.waits),
        "notes": saved.notes.plain(),
        "segments": names_met(saved.policy, saved.memory),
    }
    try:  # bit by bit: other threads get a turn in between, and decide while one saves
        text = "".join(json.JSONEncoder(allow_nan=False).iterencode(told))
    except ValueError:
        raise InvalidProblem(
            "the agent cannot be saved, since its memory holds numbers that are not finite; outcomes of too many sizes "
            "were learned, so start a new agent with scaled rewards and costs"
        ) from None
    return f'{text[:-1]}, "digest": "{fingerprint(text.encode())}"}}'.encode()


def digest(content: Mapping[str, Any]) -> str:
    """Return a fingerprint of what a file says, so that a number that was damaged is noticed."""
    told = {name: value for name, value in content.items() if name != "digest"}
    return fingerprint(json.dumps(told).encode())


def read(path: Path, raw: bytes) -> Saved:
    """Return what a file holds, checked as if it came from a user, or say why it cannot be continued from."""
    try:
        content = json.loads(raw.decode())
        check_whole(path, content)
    except InvalidFile:
        raise
    except ValueError as error:  # no UTF-8, no JSON, or a number of thousands of digits
        if path.suffix.lower() == ".toml":
            raise InvalidFile(
                f"{named(path)} declares a problem, and is no saved agent; sw.Agent(sw.Problem.load(path)) makes one"
            ) from None
        raise InvalidFile(f"{named(path)} is not whole: {brief(error)}; restore it from a backup") from None
    except RecursionError:
        raise InvalidFile(f"{named(path)} is not whole: it is nested too deep; restore it from a backup") from None
    try:
        saved = taken(content)
        fits = saved.policy.fits(saved.memory) and bool(np.isfinite(saved.memory).all())
    except StagewiseError as error:
        raise InvalidFile(
            f"{named(path)} holds settings that are refused: {brief(error)}; where they were taken before, start a new "
            "agent and give it the log (learn_log)"
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise InvalidFile(f"{named(path)} lacks something or holds it in another form: {brief(error)}") from None
    if not fits:
        raise InvalidFile(f"{named(path)} holds a memory that does not fit its policy")
    return saved


def check_whole(path: Path, content: Any) -> None:
    """Refuse what is no saved agent, one of another time, and one that says something else than when it was saved."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidFile(f"{named(path)} is not a saved agent; its format is not {FORMAT!r}")
    version = content.get("version")
    if type(version) is not int or version not in (LAST, VERSION):
        raise InvalidFile(
            f"{named(path)} has version {shown(version)}; this stagewise reads versions {LAST} and {VERSION}, "
            "so use the one that wrote it, or start a new agent and give it the log (learn_log)"
        )
    if "digest" not in content:
        raise InvalidFile(f"{named(path)} is not whole: it has no digest, and every file has one")
    if content["digest"] != digest(content):
        raise InvalidFile(
            f"{named(path)} was changed after it was saved, so that its digest is another; restore a backup"
        )


def taken(content: dict[str, Any]) -> Saved:
    """Return the values in a file."""
    policy = decoded(content["policy"])
    if not isinstance(policy, Learning):
        raise InvalidProblem("the policy in it is none")
    end = count(content["round"], "round")
    memory, order = numbers(content["memory"]), one_of(content["order"], ORDERS, "order")
    generation, seed = count(content["generation"], "generation"), seed_of(content["seed"])
    waits, last = waits_from(policy, content, order, end), content["version"] == LAST
    name = "" if last else name_of(content["name"], "name")
    former = {} if last else {str(mark): count(r, "round", end + 1) for mark, r in content["former"].items()}
    learned = end if last else count(content["learned"], "learned")
    notes = Notes.of(content.get("notes"))
    for segment in content.get("segments", []):
        number_of(str(segment))  # so that its name is known
    if policy.fits(memory):  # else the whole file is refused
        check_marks(policy, memory, notes)
    return Saved(policy, memory, seed, end, order, waits, generation, name, former, learned, notes)


def numbers(value: Any) -> Floats:
    """Return a memory's numbers; `array` would also refuse those that are not finite, or very large."""
    try:
        given = np.array(value)
    except ValueError:  # rows of several lengths
        given = np.array(None)
    if given.dtype.kind not in "fiu":
        raise InvalidProblem("the memory must be a list of numbers that a double can hold, and holds something else")
    return given.astype(np.float64)


def check_same(path: Path, kept: Learning, given: Any) -> None:
    """Refuse a file whose policy is not the one given, by what its settings mean: 0 is 0.0, and (1, 2) is [1, 2]."""
    check_verbs(given)
    check_kind(given)
    if type(kept) is not type(given):
        one, other = (type(p).__name__ if p.problem is None else "a problem" for p in (kept, given))
        raise InvalidFile(f"{named(path)} was saved by an agent of {one}, and what is given is {other}")
    if kept.problem is not None:
        for what, instead in differences(kept.problem, given.problem):
            raise InvalidFile(f"{named(path)} was saved under another problem: {what}; {instead}")
        return
    ours, theirs = kept.thresholds, given.thresholds
    same = ours.names == theirs.names and np.array_equal([ours.signs, ours.values], [theirs.signs, theirs.values])
    one, other = encoded(kept)["settings"], encoded(given)["settings"]
    for name in one:
        if one[name] != other[name] and not (name == "threshold" and same):
            raise InvalidFile(
                f"{named(path)} was saved with {name} = {shown(getattr(kept, name))}, and the policy given has "
                f"{shown(getattr(given, name))}; what was learned does not carry over, so start a new agent and "
                "give it the log (learn_log)"
            )
    if ours.names != theirs.names:
        raise InvalidFile(
            f"{named(path)} was saved with limits in the order {shown(list(ours.names))}, and the policy given has "
            f"{shown(list(theirs.names))}; costs given by position would go to the wrong one, so keep the order"
        )
