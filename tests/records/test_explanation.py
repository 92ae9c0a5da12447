"""A decision as a table: columns stand under their heads, whatever the units."""

from stagewise.records.explanation import Row, Table, explained


def test_columns_are_as_wide_as_what_stands_in_them() -> None:
    rows = (
        Row("offer", 12345.5, (1370.953, 0.4), 0.0, False),
        Row("today (safe)", 16.3, (200.0, 5.3), 1.0, True),
    )
    table = Table(("latency_ms", "stay"), (1.0, -1.0), (300.0, 4.5), "probability", rows, 0, "as drawn")
    _, head, *lines = explained(3, None, table).splitlines()
    ends = [head.index("hoped") + 5, head.index("300") + 3, head.index("slack") + 5, head.index("4.5") + 3]
    ends.append(head.rindex("slack") + 5)
    for line, cells in zip(
        lines,
        (["12345.5000", "1370.9530", "-1070.9530", "0.4000", "-4.1000"], ["16.3000", "200.0000", "100.0000", "5.3000"]),
        strict=True,
    ):
        for end, cell in zip(ends, cells, strict=False):
            assert line[:end].endswith(" " + cell)
