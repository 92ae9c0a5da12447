"""A certificate: a claim, the evidence of simulated runs and the verdict, as JSON by a schema, and as a page."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.files.paths import parse_path, read_file, write_text
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.problem.signals import Promise
from stagewise.records.explanation import Columns, render_html
from stagewise.reports.certificate_page import get_interval
from stagewise.reports.evidence import BARS, FORMAT, LEVELS, REFUTED, SUPPORTED, VERSION
from stagewise.reports.guarantee import RegretTheorem
from stagewise.reports.output_files import make_folder

REREAD_HINT = "read it with the stagewise that wrote it, or certify again"


class Number(NamedTuple):
    """The form of a number; a bool is none."""

    low: float
    high: float
    kind: Any = int | float


class Rows(NamedTuple):
    """The form of a list of entries of one form."""

    entry: Any
    least: int = 0
    most: float = math.inf


class Table(NamedTuple):
    """The form of a mapping from any names to values of one form."""

    entry: Any
    least: int = 0


def find_fault(value: Any, form: Any, path: str) -> str | None:
    """Return what is wrong with a value, or None.

    A form is a `Number`, `Rows`, a `Table`, a mapping of fields ("name?" may be missing, "*" allows others), a pattern
    of text, a set of words, a type, or a tuple (None, form), where the value may be None.
    """
    if isinstance(form, Number):
        is_number = isinstance(value, form.kind) and not isinstance(value, bool)
        rule = "" if is_number and form.low <= value <= form.high else f"a number from {form.low:g} to {form.high:g}"
    elif isinstance(form, Rows):
        rule = "" if isinstance(value, list) and form.least <= len(value) <= form.most else "a list of this length"
    elif isinstance(form, Table):
        rule = "" if isinstance(value, dict) and len(value) >= form.least else "a table that is not empty"
    elif isinstance(form, dict):
        rule = "" if isinstance(value, dict) else "a table"
    elif isinstance(form, tuple):
        return None if value is None else find_fault(value, form[1], path)
    elif isinstance(form, str | frozenset):
        fits = isinstance(value, str) and (value in form if isinstance(form, frozenset) else re.fullmatch(form, value))
        rule = "" if fits else f"one of {', '.join(sorted(form))}" if isinstance(form, frozenset) else f"like {form}"
    else:
        rule = "" if isinstance(value, form) else "of another type"
    if rule:
        shown = "" if isinstance(value, dict | list) else f" is {safe_repr(value)}; it"
        return f"{path[-80:]}{shown} must be {rule}"
    entries: list[tuple[Any, Any, str]] = []
    if isinstance(form, Rows):
        entries = [(one, form.entry, f"{path}.{index}") for index, one in enumerate(value)]
    elif isinstance(form, Table):
        entries = [(one, form.entry, f"{path}.{name}") for name, one in value.items()]
    elif isinstance(form, dict):
        known, prefix = {name.rstrip("?"): name for name in form}, f"{path}." if path else ""
        for name in [] if "*" in form else value.keys() - known.keys():
            return f"{prefix}{name} is not a field of a certificate"
        for name, written in known.items():
            if name in value:
                entries.append((value[name], form[written], prefix + name))
            elif not written.endswith(("?", "*")):
                return f"{prefix}{name} is missing"
    return next((fault for entry in entries if (fault := find_fault(*entry))), None)


SIDES = frozenset({"at most", "at least"})
VERDICT = frozenset({"supported", "refuted", "undecided"})
COUNT, POSITIVE = Number(0, 2**62 - 1, int), Number(1, 2**62 - 1, int)
NUMBER, SHARE, SECONDS = Number(-1e100, 1e100), Number(0.0, 1.0), Number(0.0, 1e12)
NUMBERS, BETWEEN, CUTS = Rows(NUMBER), Rows(SHARE, 2, 2), dict.fromkeys(LEVELS, NUMBER)
EVIDENCE = {
    **{"occurrences": COUNT, "runs": POSITIVE, "allowed": SHARE, "verdict": VERDICT},
    **{"anytime": BETWEEN, "exact": (None, BETWEEN), "runs_needed": (None, POSITIVE)},
}
FILE: dict[str, Any] = {
    **{"format": str, "version": COUNT, "verify": str, "mixes": bool},
    **{"verdict": VERDICT, "coverage_verdict": VERDICT, "violations": EVIDENCE},
    "claim": {"delta": SHARE, "confidence": Number(1e-12, 1.0 - 1e-12), "rounds": POSITIVE},
    "coverage": Rows({"signal": str, **EVIDENCE}),
    "first_violation": (None, CUTS),
    "optimism": (None, {"runs": COUNT, "rounds": COUNT}),
    "regret": {
        **{"rounds": Rows(POSITIVE, 1), "quantiles": dict.fromkeys(LEVELS, NUMBERS)},
        **{"bound": (None, NUMBERS), "above": (None, COUNT), "failure": (None, NUMBER)},
        "theorem": frozenset(map(str, RegretTheorem)),
    },
    "margins": Table(
        {"quantiles": CUTS, "counts": Rows(COUNT, BARS, BARS), "edges": Rows(NUMBER, BARS + 1, BARS + 1)}, 1
    ),
    "first_near_optimal_round": {"never": COUNT, "quantiles": (None, CUTS)},
    "policy": {"kind": str, "settings": dict | str},
    "thresholds": Rows({"name": str, "side": SIDES, "value": NUMBER, "promise?": frozenset(map(str, Promise))}, 1),
    "assumptions": Rows({"assumption": str, "declared": NUMBERS, "real": NUMBERS, "kept": bool}),
    "world": {"family": str, "name?": str, "spread?": (None, SHARE), "*": object},
    "closeness?": (None, {"runs": POSITIVE, "rounds": POSITIVE, "limits": Rows({"met": COUNT, "left": NUMBER}, 1)}),
    "plan": {
        **{"rounds": POSITIVE, "runs": POSITIVE, "seed": Number(0, 2**64 - 1, int), "batch": POSITIVE},
        **{"stop_early": bool, "backend": frozenset({"cpu", "python", "cuda"}), "points": POSITIVE},
    },
    "batches": Rows(
        {
            **{"first": COUNT, "runs": POSITIVE, "violating_runs": COUNT, "missing": Rows(COUNT)},
            **{"regret": NUMBER, "margin": NUMBERS, "digest": "[0-9a-f]{64}"},
        },
        1,
    ),
    "made": {
        **{"day?": (None, "[0-9]{4}-[0-9]{2}-[0-9]{2}"), "versions": Table(str), "machine": str},
        **{"name?": (None, ".{1,200}"), "seconds": SECONDS, "compile_seconds?": (None, SECONDS)},
    },
}


def find_curve_fault(regret: dict[str, Any]) -> str | None:
    """Return whether the curves of regret do not fit each other."""
    curves = [*regret["quantiles"].values(), *([] if regret["bound"] is None else [regret["bound"]])]
    if any(len(curve) != len(regret["rounds"]) for curve in curves):
        return "regret has curves of other lengths than its rounds"
    if len({regret[name] is None for name in ("bound", "above", "failure")}) > 1:
        return "regret has a bound, a number of runs above it or a probability of it without the others"
    return None


def parse_certificate(text: str, path: Any) -> dict[str, Any]:
    """Return the content of a certificate, or reject the text from `path`."""
    content: Any = None
    try:
        content = json.loads(text, parse_constant=parse_finite, parse_float=parse_finite)
        wrong = None if isinstance(content, dict) else "it is no table"
    except (ValueError, RecursionError) as error:
        wrong = str(error)
    if not wrong and (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        template = "{path} is not a certificate of this version of stagewise ({format} {version}); {reread_hint}"
        data = {"path": path, "format": FORMAT, "version": VERSION, "reread_hint": REREAD_HINT}
        raise InvalidFile(ErrorCode.FILE_OF_OTHER_VERSION, template, **data)
    wrong = wrong or find_fault(content, FILE, "") or find_curve_fault(content["regret"])
    if wrong:
        template = "{path} is not a valid certificate: {wrong}; {reread_hint}"
        raise InvalidFile(ErrorCode.FILE_INVALID, template, path=path, wrong=wrong[:200], reread_hint=REREAD_HINT)
    return dict(content)


def parse_finite(text: str) -> float:
    """Return a finite number, or reject it."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} stands where only finite numbers may")
    return value


@dataclass(frozen=True, eq=False)
class SimulationCertificate:
    """The result of `certify`: a claim about a policy, the evidence of simulated runs and the verdict.

    Attributes:
        content: The content of certificate.json.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> world = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])
        >>> certificate = sw.certify(policy, world, rounds=5, runs=3, backend="python", progress=False)
        >>> certificate.verdict, certificate.holds
        ('undecided', False)
    """

    content: dict[str, Any]

    @property
    def verdict(self) -> str:
        """The verdict on the claim: "supported", "refuted" or "undecided"."""
        return str(self.content["verdict"])

    @property
    def holds(self) -> bool:
        """Whether the claim is supported, and none of the intervals that it relies on is refuted."""
        return self.verdict == SUPPORTED and self.content["coverage_verdict"] != REFUTED

    def __repr__(self) -> str:
        found = self.content["violations"]
        share = f"{found['occurrences']:,} of {found['runs']:,} runs broke a limit"
        high, kind = get_interval(found)[1], self.content["policy"]["kind"]
        allowed = f"at most {high:.4%} do; allowed {found['allowed']:.4%}"
        return f"{type(self).__name__}({kind}: {self.verdict}; {share}, {allowed})"

    def _repr_html_(self) -> str:
        """Return the verdict and its evidence as a notebook shows them."""
        found = self.content["violations"]
        low, high = get_interval(found)
        rows = [
            ("policy", str(self.content["policy"]["kind"])),
            ("runs", f"{found['runs']:,}"),
            ("runs that broke a limit", f"{found['occurrences']:,}"),
            ("their share is between", f"{low:.4%} and {high:.4%}"),
            ("allowed", f"{found['allowed']:.4%}"),
        ]
        return render_html(Columns(("certificate", self.verdict), rows))

    def save(self, folder: str | Path) -> None:
        """Write certificate.json and certificate.html.

        Args:
            folder: The folder, which is created if needed.

        Raises:
            InvalidFile: The folder cannot be written.
        """
        from stagewise.reports.certificate_page import render_page

        target = make_folder(folder)
        write_text(target / "certificate.json", json.dumps(self.content, indent=1, allow_nan=False) + "\n")
        write_text(target / "certificate.html", render_page(self.content))

    @classmethod
    def load(cls, path: str | Path) -> "SimulationCertificate":
        """Load a certificate; only `verify` tests that it is true.

        Args:
            path: The file, or its folder.

        Returns:
            The certificate.

        Raises:
            InvalidFile: The file cannot be read or is not a certificate.
        """
        target = parse_path(path)
        target = target / "certificate.json" if target.is_dir() else target
        try:
            return cls(parse_certificate(read_file(target).decode(), target))
        except UnicodeDecodeError as error:
            raise InvalidFile.cannot_be(ErrorCode.FILE_INVALID, target, "read as text", error) from None
