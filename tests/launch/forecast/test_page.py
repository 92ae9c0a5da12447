"""The page of a forecast in a browser: the picture first, nothing is fetched or logged, nothing sticks out."""

from pathlib import Path
from typing import Any

import pytest
from tests.browser import shown
from tests.launch.forecast.test_forecast import PROBLEM, SIZE, log

import stagewise as sw


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("forecast")
    sw.forecast_from_log(log(), PROBLEM, limits={"opt_out": [0.05, 0.3]}, **SIZE).save(place)
    return place / "forecast.html"


@pytest.mark.long
def test_the_page_fits_and_begins_with_its_picture(page: Path) -> None:
    with shown(page, 390) as (tab, troubles):
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
        assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 300)")
        top: Any = tab.evaluate("document.images[0].getBoundingClientRect().top")
        assert top < 500
        assert "cannot be simulated" in tab.inner_text("body")
    assert troubles == []
