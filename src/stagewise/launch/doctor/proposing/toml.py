"""A proposal as the file that `Problem.load` reads, with a comment that says why beside every value."""

import json
import re
from collections.abc import Sequence

from stagewise.launch.doctor.chart import threshold_of
from stagewise.launch.doctor.proposing.proposal import Proposal
from stagewise.problem.declared import Limit, Reward


def key(name: str) -> str:
    """Return a name as a key of TOML.

    >>> key("opt_out"), key("opt out")
    ('opt_out', '"opt out"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else text(name)


def text(value: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def number(value: float) -> str:
    """Return a number as TOML writes it.

    >>> number(0.02), number(100.0), number(1e-05)
    ('0.02', '100', '1e-05')
    """
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def comment(words: str) -> str:
    """Return words as a comment of one line."""
    return "# " + "".join(c if c.isprintable() else " " for c in words)


def toml_of(proposal: Proposal) -> str:
    """Return the file."""
    problem, why = proposal.problem, proposal.reasons
    lines = [comment(line) for line in head(proposal)]
    lines += ["", f"actions = [{', '.join(map(text, problem.actions))}]", f"safe = {text(problem.safe)}"]
    lines += [f"delta = {number(problem.delta)}  {comment(why['delta'])}", ""]
    lines += ["[context]"] * bool(problem.context)
    for name, (low, high) in problem.ranges:
        lines.append(f"{key(name)} = [{number(low)}, {number(high)}]  {comment(why[f'context.{name}'])}")
    left_out = [f"{name[6:]!r} is left out: {words}" for name, words in why.items() if name.startswith("aside.")]
    lines += [comment(line) for line in left_out]
    lines += ["", "[reward]", f"name = {text(problem.reward.name)}"]
    lines += ends(problem.reward, why[f"range.{problem.reward.name}"])
    lines.append(comment('window = "12h" would say when an outcome that was not reported counts as its low'))
    for name, limit in problem.limits.items():
        lines += ["", f"[limits.{key(name)}]"]
        lines.append(f"at_most = {number(threshold_of(limit)[0])}  {comment(why[f'limit.{name}'])}")
        safe = f"safe = {number(limit.safe)}  " if limit.safe is not None else "# safe: "
        lines.append(safe + (comment(why[f"safe.{name}"]) if limit.safe is not None else why[f"safe.{name}"]))
        lines += ends(limit, why[f"range.{name}"])
        form = {True: f"by = {text(limit.by or '')}", False: ""}[limit.by is not None]
        form = 'model = "linear"' if limit.model == "linear" else form
        lines.append(f"{form}  {comment(why[f'form.{name}'])}".strip())
        lines += [comment(words) for words in [why.get(f"average.{name}")] if words]
    if problem.settings:
        length = number(problem.settings["norm_bound"])
        lines += ["", "[settings]", f"norm_bound = {length}  {comment(why['norm_bound'])}"]
    return "\n".join(lines) + "\n"


def ends(signal: Reward | Limit, why: str) -> Sequence[str]:
    """Return the lines of a signal's range."""
    return [f"low = {number(signal.low)}", f"high = {number(signal.high)}  {comment(why)}"]


def head(proposal: Proposal) -> list[str]:
    """Return what stands above everything."""
    split, roles = proposal.split, proposal.roles
    some, left = int(split.chosen_from.sum()), int(split.left.sum())
    lines = [f"Proposed by stagewise doctor from {some:,} rows: {split.words}."]
    if split.share == 1.0:
        lines.append("The same rows will be learned: what was chosen from them was paid for out of delta, below.")
    else:
        lines.append(f"Learn from the other {left:,} only: these here have been looked at.")
    if roles.guessed:
        lines.append(f"Guessed, so check: {', '.join(roles.guessed)}.")
    if proposal.seen:
        lines.append(f"Ranges that were only seen, so decide: low and high of {', '.join(map(repr, proposal.seen))}.")
    if proposal.names:
        renamed = ",".join(f"{name}={column}" for name, column in proposal.names.items())
        lines.append(f"Names that differ from the log's columns: --names {renamed}")
    return lines
