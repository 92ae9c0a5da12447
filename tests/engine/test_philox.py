"""Philox against the published answers, and against the same formula in integers that cannot overflow."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewise.engine.random import philox

ONES = 0xFFFFFFFF
words = st.integers(0, ONES)

# Random123, kat_vectors: philox4x32, 10 rounds.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], answer: tuple[int, int, int, int]
) -> None:
    assert philox(*counter, *key) == answer


@pytest.mark.compiled
@given(words, words, words, words, words, words)
def test_the_sign_bit_is_never_seen(
    first: int, second: int, third: int, fourth: int, first_key: int, second_key: int
) -> None:
    unbounded = cast(Any, philox).py_func
    expected = unbounded(first, second, third, fourth, first_key, second_key)
    assert philox(first, second, third, fourth, first_key, second_key) == expected
