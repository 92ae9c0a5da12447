"""Install a wheel into an empty environment of each Python, and run the README's first program there.

It prints the size of what is installed, the time of an import, and whether the program prints what the README shows.
With --lowest, the dependencies are the oldest that the package allows.

python -m hatchling build -d dist && python benchmarks/install.py dist/*.whl --pythons python3.11 python3.12 python3.13
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
IMPORT = "import time; start = time.perf_counter(); import stagewise; print(f'{time.perf_counter() - start:.3f}')"
IMPORT_EXTRAS = """
import stagewise.server.decision_server, stagewise.server.openfeature, stagewise.server.web.telemetry
import stagewise.agent.mlflow_model, cryptography
"""
EXTRAS = "serve,postgres,openfeature,dask,otel,mlflow,erasure"


def run(*words: str | Path, cwd: Path) -> str:
    """Run a command outside the repository; return what it prints."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_DISABLE_JIT")}
    ran = subprocess.run([str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def measure_mb(folder: Path) -> float:
    """Return the size of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def try_wheel(wheel: Path, python: str, lowest: bool) -> bool:
    """Install the wheel and run the README's program; return whether it prints what the README shows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", "env", cwd=folder)
        binary = folder / "env" / "bin" / "python"
        packages = next((folder / "env" / "lib").glob("python*/site-packages"))
        empty = measure_mb(packages)
        if lowest:
            words = ("pip", "install", "--quiet", "--python", binary, "--resolution", "lowest-direct")
            run(sys.executable, "-m", "uv", *words, f"{wheel}[{EXTRAS}]", cwd=folder)
        else:
            run(binary, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
        size = measure_mb(packages) - empty
        run(binary, "-c", "import stagewise", cwd=folder)  # writes bytecode
        seconds = min(float(run(binary, "-c", IMPORT, cwd=folder)) for _ in range(5))
        code, output = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
        (folder / "first.py").write_text(code)
        prints_it = run(binary, "first.py", cwd=folder) == output
        run(folder / "env" / "bin" / "stagewise", "--help", cwd=folder)
        if lowest:
            run(binary, "-c", IMPORT_EXTRAS, cwd=folder)
        version = run(binary, "--version", cwd=folder).strip()
        verdict = (
            "the README's program prints what it shows" if prints_it else "the README's program prints SOMETHING ELSE"
        )
        print(f"{version}{' (lowest versions)' * lowest}: {size:.0f} MB, import {seconds:.2f} s; {verdict}", flush=True)
        return prints_it


def is_runnable(python: str) -> bool:
    """Return whether a Python starts; a name that pyenv does not activate is found, but does not start."""
    return (
        shutil.which(python) is not None and not subprocess.run([python, "--version"], capture_output=True).returncode
    )


def main() -> None:
    """Try the wheel with each Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--pythons", nargs="+", default=[sys.executable])
    parser.add_argument("--lowest", action="store_true")
    given = parser.parse_args()
    found = [python for python in given.pythons if is_runnable(python)]
    for python in sorted(set(given.pythons) - set(found)):
        print(f"{python}: not on this machine (with pyenv: PYENV_VERSION=3.11.7:3.12.1:3.13.0 make release)")
    results = [try_wheel(given.wheel.resolve(), python, given.lowest) for python in found]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
