"""The id of a decision: who made it, and in which round."""

DIGITS = 12  # of a round, at least


def id_of(mark: str, round_: int) -> str:
    """Return the id of a decision; without a mark nobody says who made it.

    >>> id_of("b1ff4bcb3d84dff8", 12)
    'b1ff4bcb3d84dff8-000000000012'
    """
    return f"{mark}-{round_:0{DIGITS}d}"


def parts_of(id_: str) -> tuple[str, int] | None:
    """Return the mark and the round of an id, or nothing where it is none.

    >>> parts_of("b1ff4bcb3d84dff8-000000000012"), parts_of("12")
    (('b1ff4bcb3d84dff8', 12), None)
    """
    mark, dash, round_ = id_.rpartition("-")
    if not dash or not round_.isascii() or not round_.isdecimal() or len(round_) > 18:
        return None
    return (mark, int(round_)) if id_of(mark, int(round_)) == id_ else None
