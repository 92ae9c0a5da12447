"""Fresh interpreters with a cache, a home and rights of their own, for what only another process can show."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stagewise.engine import cache as code_cache

# Asks a small kernel, and prints how often its machine code was found, and how often it was compiled.
ASK = """
import numpy as np
from stagewise.engine.pair import first_best
assert first_best(np.array([1.0, 3.0])) == 1
print(sum(first_best.stats.cache_hits.values()), sum(first_best.stats.cache_misses.values()))
"""
FOUND, COMPILED = "1 0", "0 1"
ALONE = "not kept"  # in the sentence that says so


def asked(
    code: str = ASK, package: Path = code_cache.PACKAGE, bound: bool = False, **environment: str
) -> tuple[str, str]:
    """Return what a fresh interpreter prints and complains of; `bound`: rights to files bind it, though it be root."""
    ours = ("STAGEWISE_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR")
    rest = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_") and name not in ours}
    rest |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*(binding() if bound else ()), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**rest, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def binding() -> tuple[str, ...]:
    """Return what takes from root the right to write where it may not."""
    if os.geteuid() != 0:
        return ()
    if not (program := shutil.which("setpriv")):
        pytest.skip("nothing is read-only to root, and there is no setpriv to change that")
    return (program, "--bounding-set", "-dac_override,-dac_read_search")


def copied(folder: Path) -> Path:
    """Return a copy of the package, whose files are new to the clock."""
    return Path(shutil.copytree(code_cache.PACKAGE, folder / "stagewise", copy_function=shutil.copyfile))


def files(folder: Path) -> dict[str, bytes]:
    """Return all that is in a folder."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
