"""A certificate: a claim, the evidence of simulated runs and the verdict, as JSON and as a page."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewise.files.atomic_write import write_text
from stagewise.files.paths import parse_path, read_file
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.records.html import Columns, render_html
from stagewise.reports.certificate_schema import parse_certificate
from stagewise.reports.certificate_text import get_interval
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.output_files import make_folder


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
