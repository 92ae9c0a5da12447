"""Write the gallery: run every example, and write a page with its picture, code and output.

python docs/making/gallery.py         # only examples that changed are run again; `make docs` calls it
"""

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"
TITLES = {
    "every_round": "Every round, or on average?",
    "dose": "A dose",
    "price": "A price",
    "pacing": "Budget pacing",
    "opt_outs": "A notification",
    "segments": "A recommendation, with segments",
    "each_user": "Each user's own opt-outs",
    "map": "A kernel on a map",
    "convex_set": "A convex set",
    "shadow": "From shadow to live",
    "warm_start": "Warm start from a log",
    "guarded_boosting": "A guard around gradient boosting",
    "own_policy": "A policy of your own",
}
MORE = {  # other files that a page shows
    "own_policy": ["safe_greedy.py"],
    "shadow": ["served.py"],
}


def read_summary(name: str) -> str:
    """Return the first line of an example's docstring."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    return (text or "").splitlines()[0]


def write_page(name: str, output: str) -> str:
    """Return the page of an example."""
    parts = [
        f"# {TITLES[name]}",
        read_summary(name),
        f"![{read_summary(name)}]({name}.png)",
        f"```sh\npython examples/{name}.py\n```",
        f"```text\n{output}```",
        f"```{{literalinclude}} ../../examples/{name}.py\n:language: python\n```",
    ]
    for more in MORE.get(name, []):
        parts += [f"It uses `examples/{more}`:", f"```{{literalinclude}} ../../examples/{more}\n:language: python\n```"]
    parts.append("[`examples/picture.py`](picture.md) draws. [The whole gallery](index.md).")
    return "\n\n".join(parts) + "\n"


def write_card(name: str) -> str:
    """Return the card of an example on the index page."""
    title = f"[![{TITLES[name]}]({name}.png)]({name}.md)\n\n**[{TITLES[name]}]({name}.md)**\n\n{read_summary(name)}"
    return f":::{{container}} card\n{title}\n:::"


def run_example(name: str) -> str:
    """Run an example, write its page, and return its name."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), f"docs/gallery/{name}.png"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(f"examples/{name}.py failed:\n{process.stderr}")
    output = "".join(line for line in process.stdout.splitlines(True) if "is its picture" not in line)
    (GALLERY / f"{name}.md").write_text(write_page(name, output), encoding="utf-8")
    return name


def is_stale(name: str) -> bool:
    """Say whether a source of a page is newer than it."""
    path = GALLERY / f"{name}.md"
    sources = [*(ROOT / "src").rglob("*.py"), *EXAMPLES.glob("*.py"), Path(__file__)]
    return not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def main() -> None:
    """Write missing and stale pages, and all cards."""
    with ThreadPoolExecutor(2) as pool:
        for name in pool.map(run_example, filter(is_stale, TITLES)):
            print(f"docs/gallery/{name}.md")
    drawing = "# The picture\n\n```{literalinclude} ../../examples/picture.py\n:language: python\n```\n"
    (GALLERY / "picture.md").write_text(drawing, encoding="utf-8")
    (GALLERY / "cards.md").write_text("\n\n".join(map(write_card, TITLES)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
