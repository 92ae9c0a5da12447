"""Count the lines of a folder of Python by package and kind: `python benchmarks/lines.py src/stagewise`."""

import argparse
import ast
from collections import Counter
from pathlib import Path

KINDS = ("files", "lines", "code", "docstrings", "blank", "imports", "comments")


def count_file(path: Path) -> Counter[str]:
    """Return the lines of a file by kind; a line belongs to one kind."""
    text, kinds = path.read_text(encoding="utf-8"), dict[int, str]()
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        kind = "docstrings" if is_text else "imports" if isinstance(node, ast.Import | ast.ImportFrom) else None
        if kind is not None and isinstance(node, ast.stmt):
            kinds |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), kind)
    counts: Counter[str] = Counter(files=1)
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        own = "blank" if not stripped else "comments" if stripped.startswith("#") else "code"
        counts.update(["lines", kinds.get(number, own)])
    return counts


def main() -> None:
    """Print a table in Markdown, the largest package first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder, packages = parser.parse_args().folder, dict[str, Counter[str]]()
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        packages.setdefault(parts[0] if len(parts) > 1 else ".", Counter()).update(count_file(path))
    total = sum(packages.values(), Counter[str]())
    rows = [*sorted(packages.items(), key=lambda row: -row[1]["lines"]), ("all", total)]
    print("| package |", " | ".join(KINDS), "|\n|---|" + "---|" * len(KINDS))
    for name, counts in rows:
        print(f"| {name} |", " | ".join(f"{counts[kind]:,}" for kind in KINDS), "|")


if __name__ == "__main__":
    main()
