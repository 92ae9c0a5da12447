"""Our pages measured in a browser: figures first, claims beside them, nothing sticks out, readable in the dark."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import LOOKS, Opened, browsing, faint, sticks_out, top_of

from stagewise.reports.certificate import SimulationCertificate
from stagewise.reports.certificate_page import render_page
from stagewise_reproduction.certificates import write_index
from stagewise_reproduction.run import reproduce

pytestmark = LOOKS
DOCUMENTS = Path(__file__).parents[2] / "docs" / "certificates"
PHONE, DESK, SCREEN = 390, 1280, 900
Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out, certificates = tmp_path_factory.mktemp("report"), tmp_path_factory.mktemp("certificates")
    reproduce(["figure-4"], ["text"], "smoke", out, 1)
    for path in DOCUMENTS.glob("*/certificate.json"):
        (certificates / path.parent.name).mkdir()
        shutil.copy(path, certificates / path.parent.name)
    for name in ("lc-lucb", "gpu-roful"):
        path = certificates / name / "certificate.json"
        path.with_suffix(".html").write_text(render_page(SimulationCertificate.load(path).content), encoding="utf-8")
    write_index(certificates)
    return {
        "report": out / "report.html",
        "certificate": certificates / "lc-lucb" / "certificate.html",
        "certificate of a GPU": certificates / "gpu-roful" / "certificate.html",
        "index": certificates / "index.html",
    }


@pytest.fixture(scope="module")
def opened() -> Iterator[Open]:
    with browsing() as opening:
        yield opening


def place(tab: Any, selector: str) -> dict[str, float]:
    found: dict[str, float] = tab.eval_on_selector(selector, "e => e.getBoundingClientRect().toJSON()")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", ["report", "certificate", "certificate of a GPU", "index"])
def test_a_page_stands_by_itself_fits_its_window_and_can_be_read(
    name: str, width: int, scheme: str, pages: dict[str, Path], opened: Open
) -> None:
    tab, troubles = opened(pages[name], width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")  # with every table unfolded
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert sticks_out(tab) == []
    assert faint(tab) == []
    assert troubles == []
    pictures = tab.eval_on_selector_all("img", "all => all.map(i => i.complete && i.naturalWidth > 300)")
    assert all(pictures)
    assert (len(pictures) > 0) == (name != "index")
    tab.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_report_opens_with_its_verdict_and_a_figure(width: int, pages: dict[str, Path], opened: Open) -> None:
    tab, _ = opened(pages["report"], width)
    tops = [top_of(tab, selector) for selector in ("h1", ".verdict", "img", "table", "#claims", "#errata")]
    assert tops[:3] == sorted(tops[:3])
    assert tops[2] < (0.6 if width == PHONE else 0.4) * SCREEN
    assert tops[2] < tops[4] < tops[5]
    assert tab.eval_on_selector_all("details[open]", "all => all.length") == 0
    tab.close()


def test_claims_stand_beside_their_figure_and_on_a_phone_below_it(pages: dict[str, Path], opened: Open) -> None:
    wide, _ = opened(pages["report"], DESK)
    figure, claims = place(wide, "img"), place(wide, ".claims")
    assert claims["left"] > figure["right"]
    assert abs(claims["top"] - figure["top"]) < 40
    narrow, _ = opened(pages["report"], PHONE)
    figure, claims = place(narrow, "img"), place(narrow, ".claims")
    assert claims["top"] > figure["bottom"]
    assert figure["height"] > figure["width"]  # panels below each other, so that words can be read
    for tab in (wide, narrow):
        tab.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_certificate_shows_its_picture_on_the_first_screen(width: int, pages: dict[str, Path], opened: Open) -> None:
    tab, _ = opened(pages["certificate"], width)
    assert top_of(tab, ".verdict") < top_of(tab, "img") < 0.5 * SCREEN
    tab.close()


def test_a_dark_page_is_dark_and_turns_the_ink_of_its_pictures(pages: dict[str, Path], opened: Open) -> None:
    for name in ("report", "certificate"):
        tab, _ = opened(pages[name], DESK, "dark")
        hidden = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, hidden[4:-1].split(", "))) < 60
        assert "invert" in tab.eval_on_selector("img", "e => getComputedStyle(e).filter")
        tab.close()


def test_the_index_has_a_card_for_every_certificate(pages: dict[str, Path], opened: Open) -> None:
    tab, _ = opened(pages["index"], DESK)
    links = tab.eval_on_selector_all("a.card", "all => all.map(a => a.getAttribute('href'))")
    folders = sorted(path.parent.name for path in DOCUMENTS.glob("*/certificate.json"))
    assert sorted(link.partition("/")[0] for link in links) == folders
    assert {"gpu-lclucb", "gpu-roful"} <= set(folders)
    assert all(link.partition("/")[2] == "certificate.html" for link in links)
    tab.close()
