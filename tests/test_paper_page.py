"""docs/explanation/paper.md has a row for every item of the paper, and the functions and tests that it names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "explanation" / "paper.md").read_text(encoding="utf-8")
LISTED = (ROOT / "tests" / "paper_items.txt").read_text(encoding="utf-8")
FOLDERS = (ROOT / "src" / "stagewise", ROOT / "reproduction" / "src" / "stagewise_reproduction", ROOT)
NAMED = re.compile(r"`([\w/]+\.py): ([\w.]+)`((?:, `[\w.]+`)*)")
FILES = re.compile(r"`([\w/]+\.(?:py|json|txt))[:`]")
PAPER = PAGE.split("\n## Ours")[0]
COMPUTED = {"as printed", "generalised", "corrected", "replaced", "reproduced"}
ARGUED = {"proof", "not computed", "prose"}  # nothing that a test could look at


def references() -> list[tuple[str, str]]:
    """Return every file and name."""
    found = []
    for path, first, rest in NAMED.findall(PAGE):
        found += [(path, name) for name in [first, *re.findall(r"`([\w.]+)`", rest)]]
    return sorted(set(found))


def rows() -> list[list[str]]:
    """Return the cells of every row about the paper: labels, what it says, where, tested by, verdict."""
    lines = [line for line in PAPER.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r" \|(?: |$)", line[2:])][:5] for line in lines]


def labels_of(row: list[str]) -> list[str]:
    return re.findall(r"`([^`]+)`", row[0])


def items() -> list[str]:
    """Return the labels of the paper's items."""
    return [line.split(" | ")[0] for line in LISTED.splitlines() if line and not line.startswith("#")]


def test_the_page_names_many() -> None:
    assert len(references()) > 200
    assert len(rows()) > 85
    assert len(items()) == len(set(items())) == 132


def test_every_item_of_the_paper_has_a_row() -> None:
    labels = [label for row in rows() for label in labels_of(row)]
    assert [item for item in items() if item not in labels] == []
    assert [label for label in labels if labels.count(label) > 1] == []


def test_what_has_a_row_is_in_the_list_or_is_no_numbered_item() -> None:
    prose = ("setting", "notation", "radius:", "bounds:", "paragraph:", "footnote:", "experiment:", "comparison:")
    labels = [label for row in rows() for label in labels_of(row)]
    assert [label for label in labels if label not in items() and not label.startswith(prose)] == []


def test_every_row_has_a_file_a_test_and_a_verdict() -> None:
    wrong = []
    for row in rows():
        verdict = re.match(r"\*\*([\w ]+)\*\*", row[4]) if len(row) == 5 else None
        word = verdict.group(1) if verdict else ""
        lacking = word in COMPUTED and not (FILES.search(row[2]) and re.search(r"`[\w/]*tests/[\w/]+\.py: ", row[3]))
        if word not in COMPUTED | ARGUED or lacking:
            wrong.append((row[0], word, row[3][:40]))
    assert wrong == []


def test_few_rows_are_left_to_an_argument() -> None:
    argued = [row[0] for row in rows() if not any(f"**{word}**" in row[4] for word in COMPUTED)]
    assert len(argued) <= 4, argued


def missing(path: str, name: str) -> bool:
    """Say whether no such file defines such a name."""
    paths = [folder / path for folder in FOLDERS if (folder / path).exists()]
    text = paths[0].read_text(encoding="utf-8") if paths else ""
    found = r"^\s*(?:def|class) {0}\b|^\s*{0}(?::[^=]+)? = |\b{0}, .* = "
    return not all(re.search(found.format(word), text, re.MULTILINE) for word in name.split("."))


def test_what_the_page_names_exists() -> None:
    assert [reference for reference in references() if missing(*reference)] == []


def test_every_file_that_the_page_names_exists() -> None:
    named = sorted(set(FILES.findall(PAGE)))
    assert len(named) > 60
    assert [path for path in named if not any((folder / path).exists() for folder in FOLDERS)] == []


@pytest.mark.parametrize(
    "reference", [("engine/no.py", "ridge"), ("engine/layout.py", "no"), ("engine/layout.py", "ModelBlock.no")]
)
def test_a_missing_name_is_found(reference: tuple[str, str]) -> None:
    assert missing(*reference)
    assert not missing("engine/layout.py", "ModelBlock")
