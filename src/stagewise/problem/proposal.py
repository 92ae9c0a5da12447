"""What a caller proposes for one user, a distribution or scores, and what became of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import Floats, check_mapping, check_number
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import join_names, safe_repr
from stagewise.problem.thresholds import Thresholds

SUM_TOLERANCE = 1e-9  # by which weights may exceed 1
GetIndex = Callable[[Any], int]


class Proposal(NamedTuple):
    """A proposal, as rules read it."""

    values: Floats
    """(K,) probabilities that sum to 1, or scores scaled to [0, 1]; (n, K) for many users."""
    is_scores: bool

    def take(self, rows: Any) -> "Proposal":
        """Return the proposal of one of many users, or those of some."""
        return Proposal(self.values[rows], self.is_scores)


class Offer(NamedTuple):
    """The actions that a proposal may name."""

    names: Sequence[str]
    get_index: GetIndex
    safe_index: int
    eligible: Sequence[int] | None
    """The indices of the eligible actions; None: all."""

    def is_eligible(self, index: int) -> bool:
        """Return whether an action may be proposed; the safe one always may."""
        return self.eligible is None or index == self.safe_index or index in self.eligible


def check_one_kind(propose: Any, scores: Any, is_needed: bool) -> None:
    """Raise where a call has a proposal and scores, or neither and a problem can choose nothing by itself."""
    if propose is not None and scores is not None:
        remedy = "give one of them: propose= plays as much of a proposal as is safe, scores= chooses the safe mixture"
        raise InvalidActions.conflict("propose", propose, f"scores is {safe_repr(scores)}", remedy)
    if is_needed and propose is None and scores is None:
        text = "this problem has no reward to learn, so nothing can be chosen; give propose= or scores="
        raise InvalidActions(ErrorCode.MISSING_VALUE, text)


def parse_proposal(propose: Any, scores: Any, offer: Offer, score_range: tuple[float, float]) -> Proposal | None:
    """Return what a call proposes; None: nothing."""
    if propose is not None:
        return Proposal(parse_weights(propose, offer), False)
    return None if scores is None else Proposal(parse_scores(scores, offer, score_range), True)


def parse_weights(propose: Any, offer: Offer) -> Floats:
    """Return the probabilities (K,) of a proposal: an action, or weights by action with the rest for the safe one."""
    weights = [0.0] * len(offer.names)
    if isinstance(propose, str):
        weights[check_eligible(offer, propose, offer.get_index(propose))] = 1.0
        return np.array(weights)
    if type(propose) is not dict and not isinstance(propose, Mapping):
        rule = "an action, or a mapping from actions to probabilities"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "propose", propose, rule)
    for name, value in read_entries(propose, "propose").items():
        index = offer.get_index(name)
        weight = value if type(value) is float else check_number(value, f"the weight of {name!r}", InvalidActions)
        if not 0.0 <= weight <= 1.0 + SUM_TOLERANCE:
            rule = "a probability, from 0 to 1"
            raise InvalidActions.must_be(ErrorCode.INVALID_PROBABILITY, f"the weight of {name!r}", weight, rule)
        if offer.eligible is not None and weight > 0.0:
            check_eligible(offer, name, index)
        weights[index] = weight
    total = math.fsum(weights)
    if not 0.0 < total <= 1.0 + SUM_TOLERANCE:
        rule = "above 0 and at most 1; what is missing to 1 is the safe action's"
        raise InvalidActions.must_be(ErrorCode.INVALID_PROBABILITY, "the sum of the proposed weights", total, rule)
    if total > 1.0:
        return np.array(weights) / total
    weights[offer.safe_index] += 1.0 - total
    return np.array(weights)


def read_entries(value: Mapping[Any, Any], what: str) -> dict[Any, Any]:
    """Return a mapping as a dictionary, a dictionary as it is."""
    return value if type(value) is dict else check_mapping(value, what, InvalidActions)


def check_eligible(offer: Offer, name: Any, index: int) -> int:
    """Return the index of a proposed action, or raise where it is not offered in this call."""
    if not offer.is_eligible(index):
        names = join_names([offer.names[i] for i in offer.eligible or ()])
        text = "propose has {name}, which is not among the actions of this call, {names}"
        raise InvalidActions(ErrorCode.UNKNOWN_ACTION, text, name=safe_repr(name), names=names)
    return index


def parse_scores(scores: Any, offer: Offer, score_range: tuple[float, float]) -> Floats:
    """Return the scores (K,), scaled to [0, 1]; without a score of its own, the safe action has the lowest."""
    low, high = score_range
    values: list[float | None] = [None] * len(offer.names)
    if type(scores) is not dict and not isinstance(scores, Mapping):
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "scores", scores, "a mapping from actions to scores")
    for name, value in read_entries(scores, "scores").items():
        is_plain = type(value) is float and low <= value <= high
        score = value if is_plain else check_number(value, f"the score of {name!r}", InvalidActions)
        index = offer.get_index(name)
        if not low <= score <= high:
            rule = f"in the range of the reward, [{low:g}, {high:g}]"
            raise InvalidActions.must_be(ErrorCode.OUT_OF_RANGE, f"the score of {name!r}", score, rule)
        values[index] = (score - low) / (high - low)
    if values[offer.safe_index] is None:
        values[offer.safe_index] = 0.0
    if None not in values:
        return np.array(values, dtype=np.float64)
    absent = [offer.names[i] for i, value in enumerate(values) if value is None and offer.is_eligible(i)]
    if absent:
        text = "scores lacks {absent}; every action of the call needs a score (only= leaves actions out)"
        raise InvalidActions(ErrorCode.MISSING_VALUE, text, absent=join_names(absent))
    return np.array([0.0 if value is None else value for value in values])


Flags = npt.NDArray[np.bool_]
BINDING = 1e-6  # of the threshold: a limit with less slack than this binds
LEAST_SCALE = 1e-3  # of the range of outcomes, where a threshold is near 0
ROUNDING = 1e-12  # probabilities that differ less are equal


class ProposalStatus(NamedTuple):
    """What became of what a caller proposed for one user.

    Attributes:
        weights: The proposed probability of every action that was proposed, by name; empty for scores.
        scores: The given scores, by name, in the units of the reward; empty for a proposal.
        overlap: The share of the proposal that is played, Σ min(π, q); None for scores.
        held_back: By action, how much of its proposed probability is not played.
        binding: The limits that hold the rest back.
    """

    weights: Mapping[str, float]
    scores: Mapping[str, float]
    overlap: float | None
    held_back: Mapping[str, float]
    binding: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON holds it; scores, or weights with what became of them.

        Returns:
            A dictionary that `from_dict` reads.

        Example:
            >>> ProposalStatus({}, {"offer": 0.2}, None, {}, ()).to_dict()
            {'scores': {'offer': 0.2}, 'binding': []}
        """
        if self.overlap is None:
            return {"scores": dict(self.scores), "binding": list(self.binding)}
        return {
            "weights": dict(self.weights),
            "overlap": self.overlap,
            "held_back": dict(self.held_back),
            "binding": list(self.binding),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "ProposalStatus":
        """Read what `to_dict` returned.

        Args:
            content: The dictionary.

        Returns:
            The status.

        Example:
            >>> status = ProposalStatus({"offer": 1.0}, {}, 0.4, {"offer": 0.6}, ("opt_out",))
            >>> ProposalStatus.from_dict(status.to_dict()) == status
            True
        """
        overlap, by_name = content.get("overlap"), {}
        for field in ("weights", "scores", "held_back"):
            by_name[field] = {str(name): float(value) for name, value in content.get(field, {}).items()}
        return cls(
            by_name["weights"], by_name["scores"], None if overlap is None else float(overlap), by_name["held_back"],
            tuple(map(str, content["binding"])),
        )  # fmt: skip

    def __str__(self) -> str:
        binding = f"; {', '.join(self.binding)} binds" if self.binding else ""
        if self.overlap is None:
            return f"scores as given{binding}"
        if not self.held_back:
            return f"proposal: played whole{binding}"
        held = ", ".join(f"{name} {weight:.4g}" for name, weight in self.held_back.items())
        return f"proposal: {self.overlap:.4g} of it is played; held back: {held}{binding}"


def summarize_proposal(
    proposed: Mapping[str, float],
    is_scores: bool,
    probabilities: Mapping[str, float],
    safe: str,
    limits: Thresholds,
    costs: Sequence[float],
    lengths: Sequence[float],
) -> ProposalStatus:
    """Return the status of proposed weights or given scores by name, from the probabilities that are played.

    `costs` are the pessimistic costs of what is played and `lengths` the lengths of the ranges, in the user's units.
    """
    binding = tuple(compress(limits.names, find_binding(limits, np.array(costs), np.array(lengths))))
    if is_scores:
        return ProposalStatus({}, proposed, None, {}, binding)
    rest = {name: weight - probabilities[name] for name, weight in proposed.items() if name != safe}
    held_back = {name: weight for name, weight in rest.items() if weight > ROUNDING}
    overlap = 1.0 - math.fsum(held_back.values())
    return ProposalStatus(proposed, {}, max(overlap, 0.0), held_back, binding if held_back else ())


def find_binding(limits: Thresholds, costs: Floats, lengths: Floats) -> Flags:
    """Return which limits bind (..., m), from pessimistic costs (..., m) and lengths of ranges (m,) in user's units."""
    scale = np.maximum(np.abs(limits.values), LEAST_SCALE * lengths)
    return np.asarray(limits.signs * (limits.values - costs) <= BINDING * scale)
