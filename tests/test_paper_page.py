"""docs/paper.md names functions and tests: they exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PLACES = (ROOT / "src" / "stagewise", ROOT / "reproduction" / "src" / "stagewise_reproduction", ROOT)
NAMED = re.compile(r"`([\w/]+\.py): ([\w.]+)`((?:, `[\w.]+`)*)")


def references() -> list[tuple[str, str]]:
    """Return every file and name."""
    found = []
    for path, first, rest in NAMED.findall(PAGE):
        found += [(path, name) for name in [first, *re.findall(r"`([\w.]+)`", rest)]]
    return sorted(set(found))


def test_the_page_names_many() -> None:
    assert len(references()) > 150


def missing(path: str, name: str) -> bool:
    """Say whether no such file defines such a name."""
    places = [place / path for place in PLACES if (place / path).exists()]
    text = places[0].read_text(encoding="utf-8") if places else ""
    found = r"^\s*(?:def|class) {0}\b|^\s*{0}(?::[^=]+)? = |\b{0}, .* = "
    return not all(re.search(found.format(part), text, re.MULTILINE) for part in name.split("."))


def test_what_the_page_names_exists() -> None:
    assert [reference for reference in references() if missing(*reference)] == []


@pytest.mark.parametrize(
    "reference", [("kernels/no.py", "ridge"), ("kernels/layout.py", "no"), ("kernels/layout.py", "Part.no")]
)
def test_what_does_not_exist_is_seen(reference: tuple[str, str]) -> None:
    assert missing(*reference)
    assert not missing("kernels/layout.py", "Part")
