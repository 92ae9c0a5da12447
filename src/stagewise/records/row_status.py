"""What became of a row of a table of decisions or outcomes."""

from enum import StrEnum


class RowStatus(StrEnum):
    """What became of a row that was registered or learned.

    Example:
        >>> str(RowStatus.ACCEPTED)
        'accepted'
    """

    ACCEPTED = "accepted"
    """It counts."""
    DUPLICATE = "duplicate"
    """It is already known; nothing of it counts again."""
    LATE = "late"
    """A signal arrived after its window closed; what arrived in time counts."""
    UNKNOWN = "unknown"
    """No decision of this agent has this id."""
    INVALID = "invalid"
    """A value is missing or outside its range; nothing of it counts."""
