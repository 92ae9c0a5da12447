"""Restriction of the offered actions in one call."""

from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import safe_repr


def restrict_actions(policy: Any, actions: Any, only: Any) -> Any:
    """Return the actions restricted to `only`: by name for a problem, else by index."""
    if hasattr(policy, "encode_context"):
        return policy.encode_context(actions, only)
    if not hasattr(actions, "only"):
        raise InvalidActions(
            ErrorCode.WRONG_TYPE,
            "only is {only}, and the actions are not an action set; give sw.FiniteSet(...).only(...)",
            only=safe_repr(only),
        )
    return actions.only(only)
