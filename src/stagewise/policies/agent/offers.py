"""What is on offer in one call, where not all of it is."""

from typing import Any

from stagewise.problem.errors import InvalidActions
from stagewise.problem.words import shown


def offered_by(policy: Any, actions: Any, only: Any) -> Any:
    """Return the actions, of which only these are on offer: by name for a problem, else as the set takes them."""
    if hasattr(policy, "offered"):
        return policy.offered(actions, only)
    if not hasattr(actions, "only"):
        raise InvalidActions(f"only is {shown(only)}, and the actions are no set; give sw.Finite(...).only(...)")
    return actions.only(only)
