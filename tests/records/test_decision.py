"""A decision is a record: short to print, fit to be sent elsewhere, and not to be rewritten."""

import pickle

import numpy as np
import pytest

import stagewise as sw


def decided() -> sw.Decision:
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(2)), threshold={"wear": 0.5}, noise=0.1)
    return sw.Agent(policy).decide(np.eye(2))


def test_it_prints_in_a_line_or_two() -> None:
    text = repr(decided())
    assert "index=0" in text
    assert "fallback=None" in text
    assert len(text) < 300


def test_it_survives_a_trip_to_another_process() -> None:
    decision = decided()
    copy = pickle.loads(pickle.dumps(decision))
    assert copy.explanation() == decision.explanation()
    assert "wear ≤ 0.5" in copy.explanation()


def test_it_cannot_be_rewritten() -> None:
    decision = decided()
    with pytest.raises(AttributeError):
        decision.step = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        decision.action[0] = 1.0
