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


@pytest.mark.parametrize(("path", "name"), references())
def test_what_the_page_names_exists(path: str, name: str) -> None:
    places = [place / path for place in PLACES if (place / path).exists()]
    assert places, path
    text = places[0].read_text(encoding="utf-8")
    for part in name.split("."):
        found = rf"^\s*(?:def|class) {part}\b|^\s*{part}(?::[^=]+)? = |\b{part}, .* = "
        assert re.search(found, text, re.MULTILINE), part
