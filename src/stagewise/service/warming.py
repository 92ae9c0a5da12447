"""A decision and an outcome that nobody sees, so that what is compiled is there before the first user comes."""

from typing import Any

from stagewise.service.controls import Controls
from stagewise.service.deciding import decided, decided_all
from stagewise.service.fold import Fold, beginning
from stagewise.service.messages import Asked
from stagewise.service.records import DECISION, OUTCOME, Event, canonical
from stagewise.service.versions import Version


def warm(version: Version) -> None:
    """Decide and learn once, in memory."""
    problem = version.problem
    context: dict[str, Any] = {name: (low + high) / 2.0 for name, (low, high) in problem.ranges}
    asked = Asked({**context, **dict.fromkeys(problem.divisions, "nobody")})
    known, live = beginning(problem, version.number, version.retired), Controls(mode="live")
    decided_all(known, live, live, bytes(32), [("nobody", asked)])
    body = decided(known, live, live, bytes(32), "nobody", asked)
    fold = Fold(problem, version.number, version.retired)
    values = {name: signal.low for name, signal in problem.signals.items()}
    fold.take(
        [
            Event(1, 0, DECISION, "nobody", 0, canonical(body), b""),
            Event(2, 0, OUTCOME, "1", 0, canonical({"of": "nobody", "values": values}), b""),
        ]
    )
