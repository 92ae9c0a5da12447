"""A certificate: what was promised, what was found in how many runs, and what that says; as JSON and as a page."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewise.files.paths import content_of, path_of
from stagewise.problem.errors import InvalidFile
from stagewise.records.html import html_table, page_of
from stagewise.reports.certificate_words import ends_of
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.files import made, write_text


@dataclass(frozen=True, eq=False)
class Certificate:
    """Plain JSON values, and what people ask of them first."""

    content: dict[str, Any]

    @property
    def verdict(self) -> str:
        """Say "supported", "refuted" or "undecided"."""
        return str(self.content["verdict"])

    @property
    def holds(self) -> bool:
        """Whether the claim is supported, and nothing that it rests on is refuted."""
        return self.verdict == SUPPORTED and self.content["grounds"] != REFUTED

    def __repr__(self) -> str:
        found = self.content["violations"]
        share = f"{found['happened']:,} of {found['runs']:,} runs broke a limit"
        high, kind = ends_of(found)[1], self.content["policy"]["kind"]
        return f"Certificate({kind}: {self.verdict}; {share}, at most {high:.4%} do; allowed {found['allowed']:.4%})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdict and the numbers that it rests on."""
        found = self.content["violations"]
        low, high = ends_of(found)
        rows = [
            ["verdict", self.verdict],
            ["policy", str(self.content["policy"]["kind"])],
            ["runs", f"{found['runs']:,}"],
            ["runs that broke a limit", f"{found['happened']:,}"],
            ["their share lies between", f"{low:.4%} and {high:.4%}"],
            ["allowed", f"{found['allowed']:.4%}"],
        ]
        return page_of(html_table(["certificate", ""], rows))

    def save(self, folder: str | Path) -> None:
        """Write certificate.json and certificate.html."""
        from stagewise.reports.certificate_page import page

        place = made(folder)
        write_text(place / "certificate.json", json.dumps(self.content, indent=1, allow_nan=False) + "\n")
        write_text(place / "certificate.html", page(self.content))

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Return what `save` wrote; `path` is the file, or its folder. That it is true, only `verify` can tell."""
        from stagewise.reports.certificate_shape import parsed

        place = path_of(path)
        try:
            place = place / "certificate.json" if place.is_dir() else place
            text = content_of(place).decode()
        except (InvalidFile, OSError) as error:
            raise InvalidFile(f"no certificate can be read: {error}") from None
        except UnicodeDecodeError as error:
            raise InvalidFile(f"{place} is no certificate, since it is no text: {error}") from None
        return cls(parsed(text, place))
