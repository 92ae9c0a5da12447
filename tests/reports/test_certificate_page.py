"""The certificate's page in a browser: nothing is fetched or logged, all pictures are there, nothing sticks out."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.browser import shown

import stagewise as sw
from stagewise.reports.certificate_page import format_headline, render_page

NAMES = """
policy kind settings verdict coverage_verdict violations claim rounds delta confidence coverage signal
occurrences runs allowed anytime exact runs_needed thresholds name side value world family spread assumptions
assumption declared real kept margins quantiles counts edges 0 0.01 0.1 0.5 0.9 0.99 1 first_violation regret
bound above theorem failure optimism first_near_optimal_round never mixes plan made versions seed day seconds
machine batches verify format version closeness limits met left compile_seconds
"""
KNOWN = set(NAMES.split())  # names that the page asks for
WORLD = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet([[1.0, 0.0], [0.0, 1.0]]), noise=0.5)
SAFE = sw.SafeAction(features=[0.0, 0.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("certificate")
    policy = sw.LCLUCB(safe_action=SAFE, threshold={"<wear & tear>": 0.3}, noise=0.5)
    sw.certify(policy, WORLD, rounds=5, runs=400, progress=False, out=place, name="Spring & summer")
    return place


@pytest.fixture(params=[390], ids=["phone"])
def opened(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Any, list[str]]]:
    """Return the page, and what went wrong while it loaded."""
    with shown(folder / "certificate.html", request.param) as page_and_troubles:
        yield page_and_troubles


def test_the_page_stands_by_itself(opened: tuple[Any, list[str]]) -> None:
    tab, troubles = opened
    assert troubles == []
    words = "Spring & summer: does LCLUCB keep <wear & tear> ≤ 0.3?"
    assert tab.title() == f"Safety certificate: {words} supported"
    assert tab.inner_text("h1") == words
    pictures = tab.eval_on_selector_all("img", "all => all.map(i => [i.complete, i.naturalWidth, i.alt])")
    assert len(pictures) == 3
    assert all(complete and width > 300 and words for complete, width, words in pictures)
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    headings = tab.eval_on_selector_all("h2", "all => all.map(h => h.textContent)")
    assert [words.split()[-1] for words in headings] == ["Claim", "Assumptions", "Evidence", "tested", "page"]
    assert "<wear & tear>" in tab.inner_text("body")


def test_a_page_is_made_of_the_certificate_alone(folder: Path) -> None:
    content = sw.SimulationCertificate.load(folder).content
    assert render_page(content) == (folder / "certificate.html").read_text(encoding="utf-8")


def test_a_refuted_page_says_so() -> None:
    policy = sw.LinUCB(safe_action=SAFE, threshold=0.3, noise=0.5)
    content = sw.certify(policy, WORLD, rounds=5, runs=200, progress=False).content
    assert "At least" in format_headline(content)
    words = render_page(content)
    assert "The claim is refuted" in words
    assert "no theorem with explicit constants" in words
    assert "first round over a limit" in words


def test_a_page_tells_of_an_assumption_that_was_not_so() -> None:
    policy = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.45)
    content = sw.certify(policy, WORLD, rounds=5, runs=400, progress=False).content
    assert content["verdict"] == "supported"
    assert "not every assumption was true" in format_headline(content)


def test_a_page_says_where_when_and_of_what(folder: Path) -> None:
    content = sw.SimulationCertificate.load(folder).content
    words = render_page(content)
    assert f"on {content['made']['day']} (UTC)" in words
    assert "0 rounds of 0 runs" not in words
    assert '"reward"' in words  # the world that was played in
    assert "not all that was assumed" not in words


@pytest.mark.long
def test_a_policy_that_assumes_nothing_has_a_page_too() -> None:
    policy = sw.AlwaysSafe(safe_action=SAFE, threshold=0.3)
    certificate = sw.certify(policy, WORLD, rounds=20, runs=300, progress=False)
    assert certificate.holds
    assert "only that the safe action is safe" in render_page(certificate.content)


HOSTILE = """'"><script>alert(1)</script><img src=x onerror=alert(2)>$x^$&amp;"""


class Outline(HTMLParser):
    """What a page is made of, apart from its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, tuple(name for name, _ in attrs)))


def poisoned(value: Any) -> Any:
    """Return plain values in which every word and every name is hostile."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, dict):
        return {name if name in KNOWN else name + HOSTILE: poisoned(entry) for name, entry in value.items()}
    return [poisoned(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize("family", ["fixed", "callable"])
def test_no_word_of_a_certificate_becomes_a_part_of_the_page(family: str, folder: Path) -> None:
    content = sw.SimulationCertificate.load(folder).content
    hostile = poisoned(content)
    for words in (content, hostile):
        words["verdict"] = words["violations"]["verdict"] = "supported"
        words["regret"]["theorem"] = content["regret"]["theorem"]  # codes, which a file that has others is refused for
        words["world"].update(family=family, name="drawn" if words is content else HOSTILE)
    told = render_page(hostile)
    assert Outline(told).parts == Outline(render_page(content)).parts
    assert "<script" not in told
    assert "alert(1)" in told  # as words


@pytest.mark.long
def test_a_name_is_no_formula(tmp_path: Path) -> None:
    policy = sw.LCLUCB(safe_action=SAFE, threshold={"$x^$": 0.3}, noise=0.5)
    sw.certify(policy, WORLD, rounds=5, runs=3, progress=False, out=tmp_path)
    assert "$x^$" in (tmp_path / "certificate.html").read_text(encoding="utf-8")
