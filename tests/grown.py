"""A copy of the package that a test adds something to: which files it changes, and what the copy does."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.engine.processes import copied, files

from stagewise.engine import cache as code_cache

__all__ = ["changed", "copied", "insert", "ran"]


def insert(path: Path, anchor: str, before: str = "", after: str = "") -> None:
    """Write text before and after the one line of a file that begins so."""
    text = path.read_text(encoding="utf-8")
    found = list(re.finditer(rf"^{re.escape(anchor)}.*\n", text, flags=re.MULTILINE))
    assert len(found) == 1, f"{path.name} has {len(found)} lines that begin with {anchor!r}"
    start, end = found[0].span()
    path.write_text(f"{text[:start]}{before}{text[start:end]}{after}{text[end:]}", encoding="utf-8")


def changed(package: Path) -> set[str]:
    """Return the files of a copy that are new, or other than ours."""
    ours, theirs = files(code_cache.PACKAGE), files(package)
    named = {Path(name).relative_to(code_cache.PACKAGE): text for name, text in ours.items() if ".py" in name[-4:]}
    others = {Path(name).relative_to(package): text for name, text in theirs.items() if ".py" in name[-4:]}
    assert named.keys() <= others.keys()
    return {path.as_posix() for path, text in others.items() if named.get(path) != text}


def ran(package: Path, *command: str, folder: Path | None = None, **environment: str) -> str:
    """Return what a fresh interpreter prints that finds this copy of the package; `folder`: where it stands."""
    variables = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    call = [sys.executable, *command]
    done = subprocess.run(call, capture_output=True, text=True, env=variables, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
