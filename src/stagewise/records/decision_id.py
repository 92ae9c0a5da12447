"""Ids of decisions: a prefix for who decided, and the round."""

DIGITS = 12  # of a round, at least


def format_decision_id(mark: str, round_: int) -> str:
    """Return the id of a decision; the mark is empty where no agent decided.

    >>> format_decision_id("b1ff4bcb3d84dff8", 12)
    'b1ff4bcb3d84dff8-000000000012'
    """
    return f"{mark}-{round_:0{DIGITS}d}"


def parse_decision_id(id_: str) -> tuple[str, int] | None:
    """Return the mark and the round of an id; None for a text that is no id.

    >>> parse_decision_id("b1ff4bcb3d84dff8-000000000012"), parse_decision_id("12")
    (('b1ff4bcb3d84dff8', 12), None)
    """
    mark, dash, round_ = id_.rpartition("-")
    if not dash or not round_.isascii() or not round_.isdecimal() or len(round_) > 18:
        return None
    return (mark, int(round_)) if format_decision_id(mark, int(round_)) == id_ else None
