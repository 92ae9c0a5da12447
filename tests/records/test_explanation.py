"""A decision as a table: columns stand under their heads, whatever the units, in text and in HTML."""

import re

from stagewise.records.explanation import Explanation, Row, Table, format_table

ROWS = (
    Row("offer", 12345.5, (1370.953, 0.4), 0.0, False, 9876.5, (1200.0, 2.5)),
    Row("today (safe)", 16.3, (200.0, 5.3), 1.0, True, 12.3, (180.0, 5.4)),
)
TABLE = Table(("latency_ms", "stay"), (1.0, -1.0), (300.0, 4.5), "probability", ROWS, 0, "as drawn")


def test_columns_are_as_wide_as_what_stands_in_them() -> None:
    first, titles, heads, *lines = format_table(3, None, TABLE).splitlines()
    assert first == "round 3: today (safe), as drawn"
    ends = [one.end() for one in re.finditer(r"estimate|optimistic|pessimistic|probability", heads)]
    cells = [
        ["9876.5000", "12345.5000", "1200.0000", "1370.9530", "2.5000", "0.4000", "0.0000"],
        ["12.3000", "16.3000", "180.0000", "200.0000", "5.4000", "5.3000", "1.0000"],
    ]
    for line, expected in zip(lines, cells, strict=True):
        assert [line[:end].split()[-1] for end in ends] == expected
        assert all(line[:end].endswith(cell) for end, cell in zip(ends, expected, strict=True))
    assert titles.index("reward") < titles.index("latency_ms ≤ 300") < titles.index("stay ≥ 4.5")
    assert titles.index("stay") >= ends[3]  # above its own columns, behind those of the other limit


def test_a_title_that_is_wider_than_its_columns_makes_room() -> None:
    names = ("a very long name of a limit that nobody can pronounce", "b")
    _, titles, heads, *_ = format_table(0, None, TABLE._replace(names=names)).splitlines()
    assert titles.index("b ≥ 4.5") >= next(one.end() for one in re.finditer("pessimistic", heads))


def test_what_was_sampled_has_a_column_only_where_something_was() -> None:
    assert "sampled" not in format_table(0, None, TABLE)
    rows = (ROWS[0]._replace(sampled=1.0), ROWS[1]._replace(sampled=2.0, score=3.0))
    heads, first, second = format_table(0, None, TABLE._replace(rows=rows)).splitlines()[2:]
    assert heads.split()[:4] == ["estimate", "sampled", "score", "optimistic"]
    assert first.split()[2:4] == ["1.0000", "-"]
    assert second.split()[4:6] == ["2.0000", "3.0000"]


def test_an_explanation_is_text_that_shows_itself() -> None:
    text = format_table(3, None, TABLE)
    said = Explanation(text)
    assert said == text
    assert repr(said) == str(said) == text
