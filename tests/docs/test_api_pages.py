"""The generated reference has every export once, on the page of its group, with the settings of its class."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import stagewise as sw

MAKING = Path(__file__).parents[2] / "docs" / "making"


@pytest.fixture(scope="module")
def generator() -> Any:
    return SimpleNamespace(**runpy.run_path(str(MAKING / "api_pages.py")))


@pytest.fixture(scope="module")
def pages(generator: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the text of every page by its path."""
    folder = tmp_path_factory.mktemp("reference")
    written = generator.write_all(folder)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in written}


def test_every_export_is_on_one_page(pages: dict[str, str]) -> None:
    documented = [
        name for text in pages.values() for name in re.findall(r"^\.\. auto\w+:: stagewise\.(\w+)$", text, re.M)
    ]
    assert sorted(documented) == sorted(sw.__all__)


def test_the_index_links_to_every_export(pages: dict[str, str]) -> None:
    linked = dict(re.findall(r"^\| \[`(\w+)`\]\((api/\w+\.md)#\w+\) \| .+ \|$", pages["api.md"], re.M))
    assert sorted(linked) == sorted(sw.__all__)
    assert [name for name, page in linked.items() if f":: stagewise.{name}\n" not in pages[page]] == []
    assert [page for page in pages if page != "api.md" and page.removesuffix(".md") not in pages["api.md"]] == []


def test_a_page_shows_methods_and_settings(pages: dict[str, str]) -> None:
    shown = {
        name: members.split(", ")
        for text in pages.values()
        for name, members in re.findall(r"^\.\. autoclass:: (\S+)\n   :members: (.*)$", text, re.M)
    }
    assert {"decide", "learn", "save", "health"} <= set(shown["stagewise.Agent"])
    assert {"safe_action", "threshold", "max_regret_ratio"} <= set(shown["stagewise.SafePosteriorSampling"])
    assert {"reason", "message", "explain"} <= set(shown["stagewise.Decision"])
    assert set(sw.ErrorCode.__members__) <= set(shown["stagewise.ErrorCode"])
    assert "contradicted" in shown["stagewise.launch.doctor.log_report.LogReport"]  # returned, and not exported


def test_a_module_without_a_group_is_an_error(generator: Any) -> None:
    assert generator.find_group("stagewise.policies.caps") == "policies"
    with pytest.raises(LookupError, match=r"stagewise\.engine\.layout"):
        generator.find_group("stagewise.engine.layout")
