"""A desk in a process of its own, for as long as a program needs one."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import stagewise as sw


@contextmanager
def served(problem: str, safe: str) -> Iterator[tuple[sw.DeskClient, Callable[..., None]]]:
    """Serve a problem, in shadow at first; give a client, and what changes the mode."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "served.toml").write_text(problem, encoding="utf-8")
        words = ["serve", "served.toml", "--mode", "shadow", "--port", "0", "--quiet", "--keys", "keys.txt"]
        told = [sys.executable, "-u", "-m", "stagewise.cli.main", *words]
        with subprocess.Popen(told, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            try:
                lines = process.stdout or ()
                address = next(found[1] for line in lines if (found := re.search(r"the desk is at (http\S+),", line)))
                admin, key, _ = Path(folder, "keys.txt").read_text(encoding="utf-8").split()
                with sw.DeskClient(address, key, "served", safe, timeout=30.0) as client:
                    yield client, lambda **mode: changed(address, admin, mode)
            finally:
                process.terminate()


def changed(address: str, admin: str, mode: dict[str, object]) -> None:
    """Tell the desk its mode, as an admin may."""
    head = {"Authorization": f"Bearer {admin}", "Content-Type": "application/json"}
    body = json.dumps({**mode, "reason": "the next stage"}).encode()
    with urlopen(Request(f"{address}/v1/served/mode", body, head)):
        pass
