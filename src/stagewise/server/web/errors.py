"""Errors as answers: the one place that gives an exception its status, code and sentence."""

from typing import Any

import msgspec

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import LONGEST, fit_line, make_sentence
from stagewise.server.access_keys import UnknownKey
from stagewise.server.messages import Conflict, ErrorResponse, UnknownDecision, UnknownExperiment
from stagewise.server.store.base import StoreUnavailable

Headers = tuple[tuple[bytes, bytes], ...]

STATUS = {UnknownExperiment: 404, UnknownDecision: 404, UnknownKey: 404, Conflict: 409, StoreUnavailable: 503}
"""Statuses by exception class; every other StagewiseError is 422."""
BODY_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
RETRY_AFTER: Headers = ((b"retry-after", b"1"),)


class HTTPError(Exception):
    """An error response: status, code and one sentence."""

    def __init__(self, status: int, code: ErrorCode, template: str, headers: Headers = (), /, **details: Any) -> None:
        super().__init__(fit_line(make_sentence(template, details), LONGEST))
        self.status, self.code, self.headers, self.details = status, code, headers, details

    def to_message(self) -> ErrorResponse:
        return ErrorResponse(self.code, str(self))


EXPECTED_ERRORS = (HTTPError, StagewiseError, *BODY_ERRORS)


def to_http_error(error: Exception) -> HTTPError:
    if isinstance(error, HTTPError):
        return error
    if isinstance(error, StagewiseError):
        status = STATUS.get(type(error), 422)
        return HTTPError(status, error.code, error.template, RETRY_AFTER if status == 503 else (), **error.details)
    if isinstance(error, msgspec.ValidationError):
        message = "the body is invalid: {error}"
        return HTTPError(422, ErrorCode.INVALID_REQUEST, message, error=str(error).replace(" - at ", " at "))
    problem = (
        "not UTF-8 text"
        if isinstance(error, UnicodeDecodeError)
        else "nested too deeply"
        if isinstance(error, RecursionError)
        else f"not JSON: {error}"
    )
    return HTTPError(400, ErrorCode.INVALID_JSON, "the body is {problem}", problem=problem)
