"""HTTP statuses and codes of exceptions."""

import msgspec

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import LONGEST, fit_line
from stagewise.server.access_keys import UnknownKey
from stagewise.server.messages import Conflict, ErrorResponse, UnknownDecision, UnknownExperiment
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.web.http_types import Headers, HTTPError

STATUS = {UnknownExperiment: 404, UnknownDecision: 404, UnknownKey: 404, Conflict: 409, StoreUnavailable: 503}
"""Statuses by exception class; every other StagewiseError is 422."""
BODY_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
EXPECTED_ERRORS = (HTTPError, StagewiseError, *BODY_ERRORS)
RETRY_AFTER: Headers = ((b"retry-after", b"1"),)


def to_http_error(error: Exception) -> HTTPError:
    """Return an expected exception as an HTTPError."""
    if isinstance(error, HTTPError):
        return error
    if isinstance(error, StagewiseError):
        status = STATUS.get(type(error), 422)
        return HTTPError(status, error.code, str(error), RETRY_AFTER if status == 503 else ())
    return describe_body_error(error)


def describe_body_error(error: Exception) -> HTTPError:
    """Return the HTTPError of a body that cannot be parsed."""
    if isinstance(error, msgspec.ValidationError):
        message = fit_line(f"the body is invalid: {str(error).replace(' - at ', ' at ')}", LONGEST)
        return HTTPError(422, ErrorCode.INVALID_REQUEST, message)
    if isinstance(error, UnicodeDecodeError):
        return HTTPError(400, ErrorCode.INVALID_JSON, "the body is not UTF-8 text")
    if isinstance(error, RecursionError):
        return HTTPError(400, ErrorCode.INVALID_JSON, "the body is nested too deeply")
    return HTTPError(400, ErrorCode.INVALID_JSON, fit_line(f"the body is not JSON: {error}", LONGEST))


def build_item_error(error: Exception) -> ErrorResponse:
    """Return the error of one item of a batch."""
    found = to_http_error(error)
    return ErrorResponse(found.code, str(found))
