"""The list of names that readers are asked about."""

import runpy
from pathlib import Path

NAMES = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "making" / "names.py"))


def test_the_most_used_names_are_listed_each_with_a_meaning() -> None:
    ranked = NAMES["rank_names"]()[: NAMES["LENGTH"]]
    names, pages = zip(*ranked, strict=True)
    assert len(set(names)) == 80
    assert list(pages) == sorted(pages, reverse=True)
    assert {"Agent.decide", "Problem", "Limit.safe_bound"} <= set(names)
    assert [name for name in names if not NAMES["get_meaning"](name)] == []
    assert (NAMES["show"]("Agent.load"), NAMES["show"]("certify")) == ("Agent.load()", "sw.certify()")
