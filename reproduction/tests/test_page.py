"""The report in a browser: nothing is fetched or logged, every picture is there, every link leads somewhere."""

from pathlib import Path

import pytest
from tests.browser import LOOKS, shown

from stagewise_reproduction.claim import Claim

pytestmark = LOOKS


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_the_page_is_whole_and_leads_nowhere_else(width: int, reproduction: tuple[Path, list[Claim]]) -> None:
    with shown(reproduction[0] / "report.html", width) as (page, troubles):
        assert troubles == []
        assert page.title() == "stagewise: the paper, reproduced"
        pictures = page.eval_on_selector_all("img", "all => all.map(i => [i.complete, i.naturalWidth, i.alt])")
        assert len(pictures) > 12
        assert all(complete and wide > 100 and words for complete, wide, words in pictures)
        links = page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href'))")
        assert len(links) > 100
        assert all(link.startswith("#") and page.query_selector(f"[id='{link[1:]}']") for link in set(links))
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
