"""docs/explanation/errata.md: every number once, ordered by what matters, and each point labelled as what it is."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "explanation" / "errata.md").read_text(encoding="utf-8")
ROW = re.compile(r'^\| <a id="e(\d+)"></a>E(\d+) \| (.*) \|$')
ORDER = ["safety", "action", "optimism", "settings", "constant", "ambiguous", "no error", "typo"]


def points() -> dict[int, list[str]]:
    """Return the cells of every point: where, what it says, why, ours, and its label."""
    rows = [match for match in map(ROW.match, PAGE.splitlines()) if match]
    assert all(row.group(1) == row.group(2) for row in rows)
    return {int(row.group(1)): row.group(3).split(" | ") for row in rows}


def test_every_number_is_there_once() -> None:
    assert sorted(points()) == list(range(1, 73))
    assert len(re.findall(r'<a id="e', PAGE)) == 72
    assert all(len(cells) == 5 for cells in points().values())


def test_what_matters_comes_first_and_typos_last() -> None:
    labels = [cells[4] for cells in points().values()]
    places = [ORDER.index("ambiguous" if label == "no error" else label) for label in labels]
    assert places == sorted(places)
    assert set(labels) == set(ORDER)


def test_no_point_names_its_place_by_the_row_above() -> None:
    assert [number for number, cells in points().items() if re.match(r"same\b", cells[0])] == []


def test_points_are_labelled_as_what_they_are() -> None:
    labels = {number: cells[4] for number, cells in points().items()}
    assert labels[8] == "no error", "the paper assumes one R and one S"
    assert labels[25] == "ambiguous"
    assert (labels[29], labels[30], labels[72]) == ("typo", "typo", "typo")
    assert labels[37] != "action", "the safe action can be played in every round"
    assert {labels[number] for number in (67, 69, 70, 71)} == {"settings"}
    assert {number for number, label in labels.items() if label == "safety"} == {1, 2, 3}


def test_what_is_of_one_algorithm_is_said_of_that_one() -> None:
    why = points()[67][2]
    safe_lts = why.split("Not of Safe-LTS's")
    assert [figure in safe_lts[0] for figure in (r"226\,775", r"144\,974", r"33\,380")] == [True] * 3
    assert [figure in safe_lts[1] for figure in (r"233\,568", r"372\,915", r"175\,321")] == [True] * 3


def test_statements_about_published_code_name_their_source() -> None:
    for number in (69, 71):
        assert "commit `56a2815`" in points()[number][2]
        assert re.search(r"lines? \d+", points()[number][2])
    assert "`constrained_bandits.py`" in points()[70][2]
    assert "inherited" in points()[2][2]
