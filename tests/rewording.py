"""Begin every sentence with a random word, so that no test compares a sentence by accident.

Tests compare codes and data. Tests of the wording itself are marked `wording`.
"""

import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from stagewise.agent import health_findings
from stagewise.problem import errors
from stagewise.records import reason


def draw_word(seed: int | None = None) -> str:
    """Return a random word."""
    return "".join(random.Random(seed).choices(string.ascii_lowercase, k=12))


def reword(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Begin every sentence with a word."""

    def begin(message: Any) -> Any:
        return f"{word} {message}" if isinstance(message, str) else lambda details: f"{word} {message(details)}"

    make: Callable[..., str] = errors.make_sentence
    monkeypatch.setattr(errors, "make_sentence", lambda text, details: f"{word} {make(text, details)}")
    for messages in (reason.MESSAGES, reason.CONTRADICTIONS, health_findings.MESSAGES):
        for code, message in messages.items():
            monkeypatch.setitem(messages, code, begin(message))  # type: ignore[arg-type, type-var]
