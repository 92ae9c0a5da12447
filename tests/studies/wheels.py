"""A wheel that is made up, where pip finds it without a network."""

import zipfile
from pathlib import Path

import pytest

from stagewise.files.paths import compute_sha256
from stagewise_studies.source import Source

INSIDE = "madeup/table.csv"
TABLE = b"age,sex\n24,M\n53,F\n"


def made_up(folder: Path, table: bytes = TABLE) -> Source:
    """Write a wheel into a folder and return the source that knows it."""
    path = folder / "madeup_table-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(INSIDE, table)
        archive.writestr("madeup/__init__.py", "raise RuntimeError('it must never be run')\n")
        info = "madeup_table-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: madeup-table\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = compute_sha256(path.read_bytes())
    return Source("madeup-table", "1.0", path.name, digest, {INSIDE: compute_sha256(table)}, "made up.")


def only_here(monkeypatch: pytest.MonkeyPatch, index: Path, cache: Path) -> None:
    """Let pip look into a folder and nowhere else, and keep what it finds in another."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("STAGEWISE_CACHE", str(cache))
