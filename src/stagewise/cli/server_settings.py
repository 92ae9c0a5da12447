"""HTTP settings of `stagewise serve`."""

from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.server.messages import MAX_BATCH_SIZE
from stagewise.server.web.app import HttpSettings
from stagewise.server.web.page.sessions import parse_origin
from stagewise.server.web.requests import RateLimit


def build_settings(rate: float | None, public_url: str | None, quiet: bool) -> HttpSettings:
    """Return the HTTP settings of `stagewise serve`."""
    return HttpSettings(
        rate=RateLimit() if rate is None else parse_rate(rate),
        log=not quiet,
        public="" if public_url is None else parse_origin(public_url),
    )


def parse_rate(per_second: float) -> RateLimit:
    """Return the rate limit; a full batch is always allowed at once."""
    if not 0.0 < per_second < float("inf"):
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "--rate is {per_second:g}; it must be a number of calls per second above 0",
            per_second=per_second,
        )
    return RateLimit(per_second, max(2.0 * per_second, MAX_BATCH_SIZE))
