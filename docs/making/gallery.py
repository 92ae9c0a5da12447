"""The gallery: every short program is run, and gets a page with its picture, its code and what it printed.

python docs/making/gallery.py         # what is newer than its page is made again; `make docs` calls it
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
    "map": "A kernel on a map",
    "convex_set": "A convex set",
    "shadow": "From shadow to live",
    "warm_start": "Warm start from a log",
    "own_policy": "A policy of your own",
}
MORE = {  # what a program is made of besides itself
    "own_policy": ["safe_greedy.py"],
    "shadow": ["served.py"],
}


def sentence(name: str) -> str:
    """Return the first line of a program's docstring."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    return (text or "").splitlines()[0]


def page(name: str, printed: str) -> str:
    """Return the page of a program."""
    shown = [
        f"# {TITLES[name]}",
        sentence(name),
        f"![{sentence(name)}]({name}.png)",
        f"```sh\npython examples/{name}.py\n```",
        f"```text\n{printed}```",
        f"```{{literalinclude}} ../../examples/{name}.py\n:language: python\n```",
    ]
    for more in MORE.get(name, []):
        shown += [f"It uses `examples/{more}`:", f"```{{literalinclude}} ../../examples/{more}\n:language: python\n```"]
    shown.append("[`examples/picture.py`](picture.md) draws. [The whole gallery](index.md).")
    return "\n\n".join(shown) + "\n"


def card(name: str) -> str:
    """Return what stands for a program in the gallery."""
    title = f"[![{TITLES[name]}]({name}.png)]({name}.md)\n\n**[{TITLES[name]}]({name}.md)**\n\n{sentence(name)}"
    return f":::{{container}} card\n{title}\n:::"


def made(name: str) -> str:
    """Run a program, write its page, and return its name."""
    told = [sys.executable, str(EXAMPLES / f"{name}.py"), f"docs/gallery/{name}.png"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(told, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"examples/{name}.py failed:\n{ran.stderr}")
    printed = "".join(line for line in ran.stdout.splitlines(True) if "is its picture" not in line)
    (GALLERY / f"{name}.md").write_text(page(name, printed), encoding="utf-8")
    return name


def stale(name: str) -> bool:
    """Return whether anything that a page is made of is newer than it."""
    there = GALLERY / f"{name}.md"
    sources = [*(ROOT / "src").rglob("*.py"), *EXAMPLES.glob("*.py"), Path(__file__)]
    return not there.exists() or there.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def main() -> None:
    """Make what is missing or old, and the cards of all."""
    with ThreadPoolExecutor(2) as several:
        for name in several.map(made, filter(stale, TITLES)):
            print(f"docs/gallery/{name}.md")
    drawing = "# The picture\n\n```{literalinclude} ../../examples/picture.py\n:language: python\n```\n"
    (GALLERY / "picture.md").write_text(drawing, encoding="utf-8")
    (GALLERY / "cards.md").write_text("\n\n".join(map(card, TITLES)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
