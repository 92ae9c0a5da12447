"""Which status an error has."""

import msgspec

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import LONGEST, one_line
from stagewise.service.errors import Conflict, UnknownDecision, UnknownExperiment
from stagewise.service.keys import UnknownKey
from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import Headers, Refused

STATUS = {UnknownExperiment: 404, UnknownDecision: 404, UnknownKey: 404, Conflict: 409, StoreDown: 503}
"""Of what is not 422: the sentence was understood, and cannot be used."""
EXPECTED = (Refused, StagewiseError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
AGAIN: Headers = ((b"retry-after", b"1"),)


def refusal_of(error: Exception) -> Refused:
    """Return the status and the sentence of an expected error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, StagewiseError):
        status = STATUS.get(type(error), 422)
        return Refused(status, str(error), AGAIN if status == 503 else ())
    return Refused(*in_words(error))


def in_words(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence of a body that cannot be read."""
    if isinstance(error, msgspec.ValidationError):
        return 422, one_line(f"the body does not fit: {str(error).replace(' - at ', ' at ')}", LONGEST)
    if isinstance(error, UnicodeDecodeError):
        return 400, "the body is no UTF-8 text"
    if isinstance(error, RecursionError):
        return 400, "the body is nested too deeply"
    return 400, one_line(f"the body is no JSON: {error}", LONGEST)
