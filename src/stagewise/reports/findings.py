"""What was found in a batch of audited runs: one row a run, a digest of all of them, and a few totals."""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints


class Findings(NamedTuple):
    """Some runs, in the order of their numbers."""

    runs: Ints  # (n,)
    violations: Ints  # (n,) rounds with a cost above its threshold
    first_violation: Ints  # (n,) counted from 1; 0: none
    hopeless: Ints  # (n,) rounds that hoped for less than was possible; −1: nothing promised
    settled: Ints  # (n,) the first round that gained nine tenths of what was possible; 0: none
    missed: Ints  # (n, 1 + m) rounds in which an interval missed the truth; −1: there is none
    regret: Floats  # (n, R)
    margin: Floats  # (n, m) threshold less largest cost; the other way round for a limit from below
    bound: Floats  # (n, R) what a theorem allows; NaN: there is none


def joined(parts: list[Findings]) -> Findings:
    """Return several batches as one."""
    return Findings(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def digest(findings: Findings) -> str:
    """Return a fingerprint of what the runs did; the bound is not theirs."""
    text = hashlib.sha256()
    for name, values in zip(Findings._fields[:-1], findings[:-1], strict=True):
        kind = "<f8" if values.dtype.kind == "f" else "<i8"
        text.update(f"{name}{values.shape}".encode())
        text.update(np.ascontiguousarray(values, dtype=kind).tobytes())
    return text.hexdigest()


def totals(findings: Findings) -> dict[str, Any]:
    """Return what can be compared where other arithmetic rounds differently."""
    return {
        "first": int(findings.runs[0]),
        "runs": len(findings.runs),
        "violating": int((findings.violations > 0).sum()),
        "missing": (findings.missed > 0).sum(axis=0).tolist(),
        "regret": float(findings.regret[:, -1].mean()),
        "margin": findings.margin.min(axis=0).tolist(),
        "digest": digest(findings),
    }
