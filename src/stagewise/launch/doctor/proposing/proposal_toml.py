"""Format a proposal as the TOML file that `Problem.load` reads, with a comment on the reason for each value."""

import json
import re
from collections.abc import Sequence

from stagewise.launch.doctor.log_profile import get_threshold
from stagewise.launch.doctor.proposing.problem_proposal import Proposal
from stagewise.problem.signals import Limit, Reward


def format_key(name: str) -> str:
    """Return a name as a TOML key.

    >>> format_key("opt_out"), format_key("opt out")
    ('opt_out', '"opt out"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else format_text(name)


def format_text(value: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def format_number(value: float) -> str:
    """Return a number in TOML.

    >>> format_number(0.02), format_number(100.0), format_number(1e-05)
    ('0.02', '100', '1e-05')
    """
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def format_comment(text: str) -> str:
    """Return a text as a comment of one line."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)


def format_toml(proposal: Proposal) -> str:
    """Return the content of the file."""
    problem, why = proposal.problem, proposal.reasons
    lines = [format_comment(line) for line in format_header(proposal)]
    lines += ["", f"actions = [{', '.join(map(format_text, problem.actions))}]", f"safe = {format_text(problem.safe)}"]
    lines += [f"delta = {format_number(problem.delta)}  {format_comment(why['delta'])}", ""]
    lines += ["[context]"] * bool(problem.context)
    for name, (low, high) in problem.ranges:
        comment = format_comment(why[f"context.{name}"])
        lines.append(f"{format_key(name)} = [{format_number(low)}, {format_number(high)}]  {comment}")
    prefix = "ignored."
    ignored = {name.removeprefix(prefix): text for name, text in why.items() if name.startswith(prefix)}
    lines += [format_comment(f"{name!r} is left out: {text}") for name, text in ignored.items()]
    lines += ["", "[reward]", f"name = {format_text(problem.reward.name)}"]
    lines += format_range(problem.reward, why[f"range.{problem.reward.name}"])
    lines.append(format_comment('window = "12h" would count an outcome that is not reported in time as its low'))
    for name, limit in problem.limits.items():
        lines += ["", f"[limits.{format_key(name)}]"]
        lines.append(f"at_most = {format_number(get_threshold(limit)[0])}  {format_comment(why[f'limit.{name}'])}")
        safe = f"safe = {format_number(limit.safe)}  " if limit.safe is not None else "# safe: "
        lines.append(safe + (format_comment(why[f"safe.{name}"]) if limit.safe is not None else why[f"safe.{name}"]))
        lines += format_range(limit, why[f"range.{name}"])
        model = "" if limit.by is None else f"by = {format_text(limit.by)}"
        model = 'model = "linear"' if limit.model == "linear" else model
        lines.append(f"{model}  {format_comment(why[f'model.{name}'])}".strip())
        lines += [format_comment(why[key]) for key in [f"average.{name}"] if key in why]
    if problem.settings:
        norm_bound = format_number(problem.settings["norm_bound"])
        lines += ["", "[settings]", f"norm_bound = {norm_bound}  {format_comment(why['norm_bound'])}"]
    return "\n".join(lines) + "\n"


def format_range(signal: Reward | Limit, why: str) -> Sequence[str]:
    """Return the lines of a signal's range."""
    return [f"low = {format_number(signal.low)}", f"high = {format_number(signal.high)}  {format_comment(why)}"]


def format_header(proposal: Proposal) -> list[str]:
    """Return the lines at the top of the file."""
    split, roles = proposal.split, proposal.roles
    selected, holdout = int(split.selection.sum()), int(split.holdout.sum())
    lines = [f"Proposed by stagewise doctor from {selected:,} rows: {split.rule}."]
    if split.fraction == 1.0:
        lines.append("The same rows will be learned, so the choices made from them are paid for out of delta, below.")
    else:
        lines.append(f"Learn from the other {holdout:,} rows only: these were used to choose the problem.")
    if roles.guessed:
        lines.append(f"Guessed, please check: {', '.join(roles.guessed)}.")
    if proposal.observed:
        lines.append(
            f"Ranges taken from the log, please decide: low and high of {', '.join(map(repr, proposal.observed))}."
        )
    if proposal.columns:
        options = " ".join(f"--columns {name}={column}" for name, column in proposal.columns.items())
        lines.append(f"Column mapping: {options}")
    return lines
