"""The report in a browser: nothing is fetched or logged, every picture is there, every link leads somewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import LOOKS, shown

from stagewise_reproduction.claim import Claim

pytestmark = [pytest.mark.compiled, LOOKS]


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def opened(request: pytest.FixtureRequest, reproduction: tuple[Path, list[Claim]]) -> Iterator[tuple[Any, list[str]]]:
    """Return the page, and what went wrong while it loaded."""
    with shown(reproduction[0] / "report.html", request.param) as page:
        yield page


def test_the_page_loads_without_trouble(opened: tuple[Any, list[str]]) -> None:
    page, troubles = opened
    assert troubles == []
    assert page.title() == "stagewise: the paper, reproduced"


def test_every_picture_is_loaded_and_named(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    pictures = page.eval_on_selector_all("img", "all => all.map(i => [i.complete, i.naturalWidth, i.alt])")
    assert len(pictures) > 12
    assert all(complete and width > 100 and words for complete, width, words in pictures)


def test_every_link_leads_somewhere(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    links = page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href'))")
    assert len(links) > 100
    assert all(link.startswith("#") and page.query_selector(f"[id='{link[1:]}']") for link in set(links))


def test_nothing_sticks_out_of_the_window(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
