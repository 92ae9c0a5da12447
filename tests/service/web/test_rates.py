"""The bucket of a key."""

import pytest

from stagewise.service.web.call import Refused
from stagewise.service.web.rates import Buckets, Rate


def test_a_bucket_fills_steadily_and_never_over() -> None:
    buckets = Buckets(Rate(per_second=10, at_once=20))
    buckets.take("a", 20, now=0.0)
    with pytest.raises(Refused, match=r"'a' asked for more than 10 calls a second; wait 0.1 s") as refused:
        buckets.take("a", 1, now=0.0)
    assert refused.value.status == 429
    assert refused.value.headers == ((b"retry-after", b"1"),)
    buckets.take("b", 20, now=0.0)  # each key its own
    buckets.take("a", 10, now=1.0)
    with pytest.raises(Refused):
        buckets.take("a", 1, now=1.0)
    buckets.take("a", 20, now=1000.0)
    with pytest.raises(Refused):
        buckets.take("a", 1, now=1000.0)


def test_what_is_refused_takes_nothing() -> None:
    buckets = Buckets(Rate(per_second=1, at_once=5))
    with pytest.raises(Refused):
        buckets.take("a", 6, now=0.0)
    buckets.take("a", 5, now=0.0)
