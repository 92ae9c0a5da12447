"""To whom a limit is promised."""

from collections.abc import Sequence
from enum import StrEnum

from stagewise.problem.errors import ErrorCode, InvalidProblem


class Promise(StrEnum):
    """To whom a limit is promised, as a code that never changes.

    Example:
        >>> Promise("every_group") is Promise.EVERY_GROUP
        True
    """

    AVERAGE_USER = "average_user"  #: The average user who gets an action.
    EVERY_GROUP = "every_group"  #: The average user of every group who gets an action.
    EVERY_BUCKET = "every_bucket"  #: The average user of every bucket of a score who gets an action.
    EVERY_USER = "every_user"  #: Every user, if the form of the model is right.


def describe_promise(promise: Promise, division: str = "", form: str = "") -> str:
    """Return to whom a limit is promised; `division` is what groups or buckets are of, `form` that of the model.

    >>> describe_promise(Promise.EVERY_GROUP, "country and plan")
    'promised to the average user of every country and plan'
    """
    return {
        Promise.AVERAGE_USER: "promised to the average user who gets an action",
        Promise.EVERY_GROUP: f"promised to the average user of every {division}",
        Promise.EVERY_BUCKET: f"promised to the average user of every bucket of {division!r}"
        + (", if means do not fall with it" if form == "monotone" else ""),
        Promise.EVERY_USER: f"promised to every user, if the mean is {form} in the context",
    }[promise]


def build_promise_error(name: str, forms: Sequence[str]) -> InvalidProblem:
    """Return the error of a limit that does not say to whom it is promised; `forms` are models of every user's mean."""
    template = (
        "the limit of {name!r} must say to whom it is promised, since there is a context: model='rates', the average "
        "user who gets an action (fastest; some users may be far over); by='country', the average user of each group "
        "(slower); score='risk', that of each bucket of a risk score (slower); or model={forms}, each user, if means "
        "have that form (slowest)"
    )
    data = {"name": name, "forms": " or ".join(map(repr, forms))}
    return InvalidProblem(ErrorCode.PROMISE_NOT_CHOSEN, template, **data)
