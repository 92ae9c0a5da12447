"""The bucket of a key."""

import pytest

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.requests import HTTPError, RateLimit, RateLimiter


def test_a_bucket_fills_steadily_and_never_over() -> None:
    buckets = RateLimiter(RateLimit(per_second=10, burst=20))
    buckets.take("a", 20, now=0.0)
    with pytest.raises(HTTPError, match=r"'a'.* 10 calls per second; retry after 0.1 s") as refused:
        buckets.take("a", 1, now=0.0)
    assert (refused.value.status, refused.value.code) == (429, ErrorCode.RATE_LIMITED)
    assert refused.value.headers == ((b"retry-after", b"1"),)
    buckets.take("b", 20, now=0.0)  # each key its own
    buckets.take("a", 10, now=1.0)
    with pytest.raises(HTTPError):
        buckets.take("a", 1, now=1.0)
    buckets.take("a", 20, now=1000.0)
    with pytest.raises(HTTPError):
        buckets.take("a", 1, now=1000.0)


def test_what_is_refused_takes_nothing() -> None:
    buckets = RateLimiter(RateLimit(per_second=1, burst=5))
    with pytest.raises(HTTPError):
        buckets.take("a", 6, now=0.0)
    buckets.take("a", 5, now=0.0)
