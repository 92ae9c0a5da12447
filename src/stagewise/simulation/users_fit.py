"""Whether a world's users are told of as a policy in a context is told of its own."""

from stagewise.policies.context_caps import ContextCAPS
from stagewise.problem.errors import InvalidProblem
from stagewise.worlds.answers import Answers


def check_users(policy: ContextCAPS, world: Answers) -> None:
    """Refuse a world whose users are told of otherwise than a policy in a context is told of its own."""
    users = world.plain_users
    if users is None:
        raise InvalidProblem(
            f"the world is {world.called}; actions in a context are played for users, in a "
            'ContextWorld(..., features="plain")'
        )
    for word, ours, theirs in (
        ("actions", policy.actions, users.count),
        ("numbers about a user", policy.context, users.context),
        ("divisions into segments", policy.segments, users.divisions),
    ):
        if ours != theirs:
            raise InvalidProblem(
                f"{word}: the problem has {ours} and the world {theirs}; a world's table has a row for each action, "
                "and in it a constant and then a number for each of the context's"
            )
    if users.safe != policy.safe_action.arm:
        raise InvalidProblem(
            f"the world's safe action is {users.safe}, and the problem's {policy.safe_action.arm}, counted from 0; "
            "they must agree"
        )
