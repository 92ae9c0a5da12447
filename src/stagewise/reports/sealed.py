"""Files vouched for by the manifest beside them: it is written last, with a digest of each file and of itself."""

import json
from pathlib import Path
from typing import Any

from stagewise.files.owned import fingerprint
from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import write_bytes, write_text

MANIFEST = "manifest.json"
AGAIN = "bring back a copy of it, or delete the folder and play its runs again"


def write_sealed(folder: Path, manifest: dict[str, Any], files: dict[str, bytes]) -> None:
    """Write files and the manifest that vouches for them; cut short, it leaves no manifest and so nothing to trust."""
    told = {**manifest, "files": {name: fingerprint(content) for name, content in files.items()}}
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise InvalidFile(f"{folder / MANIFEST} cannot be replaced: {error.strerror}") from None
    for name, content in files.items():
        write_bytes(folder / name, content)
    write_text(folder / MANIFEST, json.dumps({**told, "digest": own_digest(told)}, indent=1))


def own_digest(told: dict[str, Any]) -> str:
    """Return the digest of what a manifest tells, however its text is laid out."""
    return fingerprint(json.dumps(json.loads(json.dumps(told)), sort_keys=True).encode())


def manifest_in(folder: Path) -> dict[str, Any]:
    """Return what a folder's manifest tells; refuse one that is not as it was written. It may be missing."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidFile(f"{folder} is not a folder with a result: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{folder} is not a whole result: its {MANIFEST} cannot be read, {error}") from None
    if not isinstance(told, dict):
        raise InvalidFile(f"{folder} is not a result: its {MANIFEST} holds a {type(told).__name__}")
    if {"digest", "files"} & set(told) and told.pop("digest", None) != own_digest(told):
        raise InvalidFile(f"{folder} is not a whole result: its {MANIFEST} is not as it was written; {AGAIN}")
    return told


def content_of(path: Path, digest: Any) -> bytes:
    """Return what a file holds; refuse other content than its manifest vouches for. None: nobody vouches for it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}; {AGAIN}") from None
    if digest is not None and fingerprint(content) != digest:
        raise InvalidFile(f"{path} is not whole: its SHA-256 is not the one in {MANIFEST}; {AGAIN}")
    return content
