"""An outcome that may be a part, or late, or given twice: which of it is written down, or why it is not."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from stagewise.policies.agent.deadlines import Deadlines
from stagewise.policies.agent.ledger import Ledger
from stagewise.policies.agent.outcomes import ABSENT, check_action, values_of
from stagewise.policies.learning import Learning
from stagewise.problem.checks import kept
from stagewise.problem.errors import InvalidOutcome
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome


class Parts(NamedTuple):
    """What may be written down of an outcome."""

    played: Any
    given: Sequence[int]  # the signals that came in time
    late: Sequence[int]  # those that did not


def told_by(policy: Learning | None, names: Sequence[str], reward: Any, cost: Any, signals: Any) -> tuple[Any, Any]:
    """Return the values of an outcome and which signals are given; of a policy of three verbs it is one value."""
    if policy is not None:
        return values_of(policy, names, reward, cost, signals)
    if signals or reward is ABSENT:
        raise InvalidOutcome(
            "this policy has only start, decide and learn, so its outcomes have no names; give reward= and cost="
        )
    return own_outcome(reward, None if cost is ABSENT else cost), [0]


def parts_in_time(
    ledger: Ledger, deadlines: Deadlines | None, decision: Any, round_: int, given: Sequence[int]
) -> Parts:
    """Return what of the given signals is missing still and came before its window closed, or refuse all of it."""
    late = [] if deadlines is None else [k for k in given if deadlines.is_late(round_, k)]
    given = [k for k in given if k not in late and ledger.missing(round_, k)] if late else given
    if late and not given and deadlines is not None:
        deadlines.refuse(late, round_, ledger.names)
    played = ledger.played(round_)
    again = [ledger.names[k] for k in given if not ledger.missing(round_, k)]
    if played is None or len(again) == len(ledger.names):
        raise InvalidOutcome(
            f"the outcome is for round {round_}; its outcome was given already, and once is all it counts, or "
            "it was forgotten"
        )
    if isinstance(decision, Decision):
        check_action(decision, played)
    if again:
        raise InvalidOutcome(
            f"the outcome is for round {round_}; its {again[0]!r} was given already or given up, and once is all "
            "it counts"
        )
    return Parts(played, given, late)


def own_outcome(reward: Any, cost: Any) -> Outcome:
    """Return an outcome that stays as it is whatever its giver does with a list of costs."""
    return Outcome(kept(reward), kept(cost))


def untold(signals: Any) -> None:
    """Return nothing: the outcomes of a policy of three verbs have no names."""
