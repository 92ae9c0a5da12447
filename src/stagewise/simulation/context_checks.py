"""Checks that the users of a world fit a policy with a context."""

from stagewise.policies.context_caps import ContextCAPS
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.worlds.base_world import BaseWorld


def check_users(policy: ContextCAPS, world: BaseWorld) -> None:
    """Raise if the world's users do not fit the policy's context."""
    users = world.plain_users
    if users is None:
        raise InvalidProblem(
            ErrorCode.WORLD_MISMATCH,
            'the world is {type_name}; a problem with a context needs ContextWorld(..., features="plain")',
            type_name=world.type_name,
        )
    for word, ours, theirs in (
        ("actions", policy.actions, users.count),
        ("numbers about a user", policy.context, users.context),
        ("divisions into segments", policy.segments, users.divisions),
    ):
        if ours != theirs:
            raise InvalidProblem(
                ErrorCode.WORLD_MISMATCH,
                "{word}: the problem has {ours} and the world has {theirs}; a world's table has a row "
                "for each action, with a constant and then a weight for each context number",
                word=word,
                ours=ours,
                theirs=theirs,
            )
    if users.safe != policy.safe_action.arm:
        raise InvalidProblem(
            ErrorCode.WORLD_MISMATCH,
            "the world's safe action is {safe} and the problem's is {arm}, counted from 0; they must agree",
            safe=users.safe,
            arm=policy.safe_action.arm,
        )
