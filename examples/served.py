"""Run a server in a separate process for the duration of a program."""

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
def served(problem: str, safe: str) -> Iterator[tuple[sw.Client, Callable[..., None]]]:
    """Serve a problem in shadow mode; yield a client and a function that sets the mode."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "served.toml").write_text(problem, encoding="utf-8")
        words = ["serve", "served.toml", "--mode", "shadow", "--port", "0", "--quiet", "--keys", "keys.txt"]
        command = [sys.executable, "-u", "-m", "stagewise.cli.main", *words]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            try:
                lines = process.stdout or ()
                address = next(found[1] for line in lines if (found := re.search(r"(https?://[^\s,;]+)", line)))
                admin, key, _ = Path(folder, "keys.txt").read_text(encoding="utf-8").split()
                with sw.Client(address, key, "served", safe, timeout=30.0) as client:
                    yield client, lambda **mode: set_mode(address, admin, mode)
            finally:
                process.terminate()


def set_mode(address: str, admin: str, mode: dict[str, object]) -> None:
    """Set the mode of the experiment with the admin key."""
    head = {"Authorization": f"Bearer {admin}", "Content-Type": "application/json"}
    body = json.dumps({**mode, "reason": "the next stage"}).encode()
    with urlopen(Request(f"{address}/v1/served/mode", body, head)):
        pass
