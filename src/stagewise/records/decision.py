"""Decisions: what was decided, and why."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr
from stagewise.problem.proposal import Proposal, ProposalStatus, summarize_proposal
from stagewise.problem.safe_action import decode_round_safe_action
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds
from stagewise.records.explanation import Basis, Estimates, Explanation, format_table
from stagewise.records.reason import FallbackReason, ReasonDetails

Floats = npt.NDArray[np.float64]
DIGITS = 12  # of a round in an id, at least


def format_decision_id(mark: str, round_: int) -> str:
    """Return the id of a decision; the mark is empty where no agent decided.

    >>> format_decision_id("b1ff4bcb3d84dff8", 12)
    'b1ff4bcb3d84dff8-000000000012'
    """
    return f"{mark}-{round_:012d}"


def parse_decision_id(id_: str) -> tuple[str, int] | None:
    """Return the mark and the round of an id; None for a text that is no id.

    >>> parse_decision_id("b1ff4bcb3d84dff8-000000000012"), parse_decision_id("12")
    (('b1ff4bcb3d84dff8', 12), None)
    """
    mark, dash, round_ = id_.rpartition("-")
    is_padded = len(round_) == DIGITS or (DIGITS < len(round_) <= 18 and round_[0] != "0")
    return (mark, int(round_)) if dash and is_padded and round_.isascii() and round_.isdecimal() else None


def format_estimate(value: float | None) -> str:
    return "without estimate" if value is None else f"{value:.4g}"


def to_json_value(value: Any) -> Any:
    """Return a value as JSON holds it; None for a number that is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [to_json_value(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_float(value: Any) -> float:
    """Return a number of a file; NaN for None, which stands for a number that is not finite."""
    return math.nan if value is None else float(value)


def to_floats(values: Any) -> Floats:
    """Return a read-only array of the numbers of a file; NaN for None."""
    array = np.array([to_float(value) for value in values])
    array.setflags(write=False)
    return array


class RewardGuarantee(StrEnum):
    """What is known of an optimistic reward."""

    PROVED = "proved"  #: With probability 1 − δ no mean reward of the decision's actions is above it.
    FORGETTING = "forgetting"  #: Outcomes lose weight with age (`Reward.half_life`); the bound is no theorem.


class DecisionFields(NamedTuple):
    """The fields of a decision."""

    action: Floats | int  # the vector played, or the arm
    action_index: int | None  # which listed action; None: the safe action beside the list
    step_size: float  # how far along the ray, in [0, 1]; 1.0 off rays
    probabilities: Floats | None  # (K + 1,) of the listed actions, then of the safe action beside the list
    optimistic_reward: float  # upper confidence bound of the reward
    pessimistic_cost: Floats  # (m,) upper confidence bounds of the costs; lower bounds for an `AtLeast`
    thresholds: Floats  # (m,)
    reason_details: ReasonDetails | None  # why only the safe action is played; None: another action can be played
    round: int
    solver_gap: float = 0.0  # certified bound on what the solver's `optimistic_reward` lacks; 0: closed form


class Decision(DecisionFields):
    """One round's decision, with its bounds and its reason.

    Bounds and estimates are those of the whole decision: of the mixture where the action was sampled from one. A
    `Problem` names its actions: there `action` is a name and `probabilities` a dictionary by name. Elsewhere
    `probabilities` is an array, whose last entry is the safe action beside the list; decisions on rays or convex sets
    are not sampled and have None.

    Attributes:
        action: The name of the action played for a `Problem`; elsewhere the vector, or the index of the arm.
        action_index: Which listed action is played; None for the safe action beside the list.
        step_size: How far along the ray, in [0, 1]; 1.0 off rays.
        probabilities: The probability of every action, or None.
        optimistic_reward: Upper confidence bound of the expected reward.
        pessimistic_cost: Upper confidence bounds (m,) of the expected costs; lower bounds for an `AtLeast`.
        thresholds: The limits (m,).
        reason_details: The reason with its data where only the safe action is played, or None.
        round: The round, counted from 0.
        solver_gap: Certified bound on how far `optimistic_reward` is below its maximum; 0 in closed form.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> decision = policy.decide(policy.start(), sw.ArmSet(2), sw.RandomKey(seed=1))
        >>> decision.probabilities.round(6), decision.pessimistic_cost.round(6), decision.reason
        (array([0.8, 0.2, 0. ]), array([0.2]), None)
    """

    _table: Basis | None = None  # the data of `explain`
    _saved_estimates: Estimates | None = None  # the estimates of a decision without a table
    _offered: Floats | None = None  # (M, d) the candidates that a state can cache
    _uncached: bool = False  # the state that decided had not cached them
    _round_result: Any = None  # the bounds of the candidates, where they are few (see `agent.decision_analysis`)
    _safe: Any = None  # the safe action of the round, where the round has its own
    _by: str = ""  # the prefix of the id: who decided
    _id: str = ""  # the id, where the caller gave one
    _new_candidates: Floats | None = None  # candidates that the learner has not cached
    _proposal: Proposal | None = None  # what the caller proposed
    _clipped: Sequence[str] = ()  # the numbers of the context that were beyond their range

    @property
    def _position(self) -> int:
        """The index as models learn it; −1 for the safe action beside the list."""
        return -1 if self.action_index is None else self.action_index

    @property
    def reason(self) -> FallbackReason | None:
        """Why only the safe action is played, as a code; None where another action can be played."""
        details = self.reason_details
        return None if details is None else details.reason  # type: ignore[return-value]  # trips are no reasons of it

    @property
    def message(self) -> str | None:
        """The reason as a sentence for people; programs compare `reason` and read `reason_details.details`."""
        return None if self.reason_details is None else self.reason_details.message

    @property
    def id(self) -> str:
        """Who decided, and in which round or for whom: stable across restarts, unique for every agent and replica."""
        return self._id or format_decision_id(self._by, self.round)

    def _with(self, table: Basis | None, offered: Floats | None = None, uncached: bool = False) -> "Decision":
        """Return this decision with the data that only its policy needs."""
        self._table, self._offered, self._uncached = table, offered, uncached
        return self

    def _replace(self, **changes: Any) -> "Decision":
        """Return a changed copy that keeps the data of its policy."""
        other = type(self)(**{**dict(zip(self._fields, self, strict=True)), **changes})
        vars(other).update(vars(self))
        return other

    def _with_mark(self, mark: str, new_candidates: Floats | None = None) -> "Decision":
        """Return this decision with the prefix of its id."""
        self._by, self._new_candidates = mark, new_candidates
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, for a log.

        Returns:
            The fields by name, with `id`, the estimates, and the reason as `reason`, `message` and `details`.
            Numbers that are not finite are None.

        Example:
            >>> decision = Decision(np.array([0.5]), 0, 0.5, None, 0.9, np.array([0.2]), np.array([0.2]), None, 3)
            >>> decision.to_dict()["action"], decision.to_dict()["round"]
            ([0.5], 3)
        """
        offered = {} if self._new_candidates is None else {"offered": to_json_value(self._new_candidates)}
        safe = {} if self._safe is None else {"safe": to_json_value(list(self._safe))}
        names = [*(name for name in self._fields if name != "reason_details"), "estimated_reward", "estimated_cost"]
        fields = {name: to_json_value(getattr(self, name)) for name in names}
        reason: dict[str, Any] = {"reason": None if self.reason is None else str(self.reason), "message": self.message}
        if self.reason_details is not None and self.reason_details.details:
            reason["details"] = dict(self.reason_details.details)
        return {"id": self.id, **fields, **reason, **offered, **safe}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Decision":
        """Read what `to_dict` returned.

        The copy has no table, so `explain` is empty. Numbers that were not finite are NaN.

        Args:
            content: The dictionary, of a `Problem`'s decision or of any other.

        Returns:
            The decision; its `to_dict` returns the same content.

        Raises:
            InvalidOutcome: A field is missing or has the wrong type.

        Example:
            >>> decision = Decision(np.array([0.5]), 0, 0.5, None, 0.9, np.array([0.2]), np.array([0.2]), None, 3)
            >>> Decision.from_dict(decision.to_dict()).to_dict() == decision.to_dict()
            True
        """
        try:
            return ProblemDecision._read(content) if "limits" in content else Decision._read(content)
        except (LookupError, TypeError, ValueError, AttributeError):
            template = "the decision is {decision}; it must be the result of Decision.to_dict()"
            raise InvalidOutcome(ErrorCode.WRONG_TYPE, template, decision=safe_repr(content)) from None

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> "Decision":
        """Return the decision of a dictionary; raises whatever a wrong one leads to."""
        parts = parse_decision_id(content["id"])
        mark, round_ = parts or (str(content["id"]).partition(":")[0], int(content["round"]))
        action, probabilities, reason = content["action"], content["probabilities"], content["reason"]
        decision = cls(
            to_floats(action) if isinstance(action, list) else int(action),
            None if content["action_index"] is None else int(content["action_index"]),
            float(content["step_size"]),
            None if probabilities is None else to_floats(probabilities),
            to_float(content["optimistic_reward"]),
            to_floats(content["pessimistic_cost"]),
            to_floats(content["thresholds"]),
            None if reason is None else ReasonDetails.from_json((reason, content.get("details", {}))),
            round_,
            to_float(content["solver_gap"]),
        )
        if content["estimated_cost"] is not None:
            costs = to_floats(content["estimated_cost"])
            decision._saved_estimates = Estimates(to_float(content["estimated_reward"]), costs)
        if content.get("offered") is not None:
            offered = np.array(content["offered"], dtype=np.float64)
            decision._offered, decision._uncached, decision._new_candidates = offered, True, offered
        decision._id = "" if parts else str(content["id"])
        decision._by, decision._safe = mark, decode_round_safe_action(content.get("safe"))
        return decision

    @property
    def estimated_reward(self) -> float | None:
        """The estimated mean reward of the decision: of the mixture, or of the point on a ray.

        The model's estimate at the time of the decision: for a `Problem` the fit of a regression or the mean of a
        rate, elsewhere the middle of the confidence interval. None: no estimate is kept.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
            >>> decision = policy.decide(policy.start(), sw.ArmSet(2), sw.RandomKey(seed=1))
            >>> round(decision.estimated_reward, 6), decision.estimated_cost.round(6)
            (0.18, array([0.1]))
        """
        estimates = self._estimates()
        return None if estimates is None or math.isnan(estimates.reward) else estimates.reward

    @property
    def estimated_cost(self) -> Any:
        """The estimated mean costs (m,) of the decision, beside `pessimistic_cost`; by name for a `Problem`."""
        estimates = self._estimates()
        return None if estimates is None else estimates.costs

    def _estimates(self) -> Estimates | None:
        return self._saved_estimates if self._table is None else self._table.estimates()

    def explain(self) -> Explanation:
        """Return the leading candidates with their estimates and bounds, and the reason for the choice.

        `optimistic` and `pessimistic` are the confidence bounds that the rule uses. With posterior sampling `sampled`
        is the sampled reward, from which the mixture or ray is proposed; `score` adds the value of a limit that binds.

        Returns:
            Text; a notebook shows it as a table.

        Example:
            >>> import stagewise as sw
            >>> policy = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1)
            >>> print(str(policy.decide(policy.start(), sw.ArmSet(2)).explain()).partition(",")[0])
            round 0: arm 0
        """
        if self._table is None:
            return Explanation(f"round {self.round}: no table is kept for this decision")
        table = self._table()
        return Explanation.of(format_table(self.round, self.message, table), table)

    def _repr_html_(self) -> str:
        """Return the explanation as a notebook shows it."""
        return self.explain()._repr_html_()


class LimitStatus(NamedTuple):
    """One limit of a decision, in the user's units."""

    pessimistic_cost: float  # upper confidence bound of the mixture's mean; the lower bound for an `AtLeast`
    threshold: float
    estimate: float | None = None  # the estimated mean; None: no estimate is kept


class ProblemNames(NamedTuple):
    """What the decisions of a problem say of it."""

    actions: Sequence[str]
    limits: Thresholds  # in the user's units
    safe: str = ""
    spans: Floats = np.empty((2, 0))  # (2, 1 + m) lows and lengths of the signals' ranges


class ProblemDecision(Decision):
    """One round's decision with the names of its problem: of the action, the probabilities and the limits."""

    _names = ProblemNames((), NO_THRESHOLDS)
    _saved_proposal: ProposalStatus | None = None  # what became of the proposal, of a decision that was read
    _reward_guarantee: RewardGuarantee = RewardGuarantee.PROVED

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> "ProblemDecision":
        limits, probabilities = content["limits"], content["probabilities"]
        values = to_floats([limit["threshold"] for limit in limits.values()])
        signs = np.array([1.0 if limit["at_most"] else -1.0 for limit in limits.values()])
        costs = content["estimated_cost"]
        arrays = {
            "action": content["row"],
            "probabilities": [*probabilities.values(), 0.0],  # the safe action is listed
            "estimated_cost": None if costs is None else [costs[name] for name in limits],
        }
        self: Any = super()._read({**content, **arrays})
        thresholds = Thresholds(tuple(limits), signs, values, None, np.full(values.size, np.nan))
        self._names = ProblemNames(tuple(probabilities), thresholds)
        if content.get("proposal") is not None:
            self._saved_proposal = ProposalStatus.from_dict(content["proposal"])
        self._clipped = tuple(map(str, content.get("clipped", ())))
        self._reward_guarantee = RewardGuarantee(content.get("reward_guarantee", RewardGuarantee.PROVED))
        return self  # type: ignore[no-any-return]

    @property
    def action(self) -> str:  # type: ignore[override]
        """The name of the action played."""
        return self._names.actions[self._position]

    @property
    def probabilities(self) -> dict[str, float]:  # type: ignore[override]
        """The probability of every action, by name."""
        shares: Any = self[3]
        return dict(zip(self._names.actions, shares[:-1].tolist(), strict=True))

    @property
    def limits(self) -> dict[str, LimitStatus]:
        """The estimate, the pessimistic cost and the threshold of every limit, by name."""
        estimates = self.estimated_cost or dict.fromkeys(self._names.limits.names)
        rows = zip(estimates.items(), self.pessimistic_cost.tolist(), self.thresholds.tolist(), strict=True)
        return {
            name: LimitStatus(pessimistic_cost, threshold, estimate)
            for (name, estimate), pessimistic_cost, threshold in rows
        }

    @property
    def estimated_cost(self) -> dict[str, float] | None:
        """The estimated mean of every cost, by name; None: no estimate is kept."""
        estimates = self._estimates()
        return None if estimates is None else dict(zip(self._names.limits.names, estimates.costs.tolist(), strict=True))

    @property
    def reward_guarantee(self) -> RewardGuarantee:
        """What is known of `optimistic_reward`: it is no proven bound where the reward is forgotten."""
        return self._reward_guarantee

    @property
    def clipped(self) -> tuple[str, ...]:
        """The numbers of the context that were beyond their range and count as an end of it."""
        return tuple(self._clipped)

    @property
    def proposal(self) -> ProposalStatus | None:
        """What became of the caller's proposal or scores; None: the problem's own policy decided.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}}
            >>> agent = sw.Agent(sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", **signals))
            >>> status = agent.decide(propose="offer").proposal
            >>> round(status.overlap, 6), status.binding
            (0.02, ('opt_out',))
        """
        if self._proposal is None:
            return self._saved_proposal
        (values, is_scores), (actions, limits, safe, spans) = self._proposal, self._names
        shown = spans[0, 0] + spans[1, 0] * values if is_scores else values
        proposed = {name: x for name, x in zip(actions, shown.tolist(), strict=True) if is_scores or x > 0.0}
        costs, lengths = self.pessimistic_cost.tolist(), spans[1, 1:].tolist()
        return summarize_proposal(proposed, is_scores, self.probabilities, safe, limits, costs, lengths)

    def explain(self) -> Explanation:
        """Return the explanation; where the caller proposed something, its last line says what became of it."""
        explanation, status = super().explain(), self.proposal
        return explanation if status is None else Explanation.of(f"{explanation}\n{status}", explanation._table)

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name, probabilities as the attribute has them."""
        return {**super()._asdict(), "action": self.action, "probabilities": self.probabilities}

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, with names."""
        signs = self._names.limits.signs.tolist()
        limits = {
            name: {**{key: to_json_value(value) for key, value in limit._asdict().items()}, "at_most": sign > 0.0}
            for (name, limit), sign in zip(self.limits.items(), signs, strict=True)
        }
        costs, status = self.estimated_cost, self.proposal
        return {
            **super().to_dict(),
            "row": to_json_value(self[0]),  # the user and the action, as models learn them
            "probabilities": self.probabilities,
            "estimated_cost": None if costs is None else {name: to_json_value(cost) for name, cost in costs.items()},
            "limits": limits,
            **({} if status is None else {"proposal": status.to_dict()}),
            **({"clipped": list(self._clipped)} if self._clipped else {}),
            **(
                {}
                if self._reward_guarantee is RewardGuarantee.PROVED
                else {"reward_guarantee": str(self._reward_guarantee)}
            ),
        }

    def __repr__(self) -> str:
        """Return the action, its mixture, the estimates, the bounds and the limits in one line."""
        mixture = {name: round(share, 4) for name, share in self.probabilities.items() if share > 0.0}
        limits = [
            f"{name} {format_estimate(limit.estimate)} (pessimistic {limit.pessimistic_cost:.4g}) "
            f"{'≤' if sign > 0 else '≥'} {limit.threshold:.4g}"
            for (name, limit), sign in zip(self.limits.items(), self._names.limits.signs, strict=True)
        ]
        reason = "" if self.reason is None else f", reason={str(self.reason)!r}"
        reason += "" if self.proposal is None else f", {self.proposal}"
        reward = f"reward {format_estimate(self.estimated_reward)} (optimistic {self.optimistic_reward:.4g})"
        shown = [*([] if math.isnan(self.optimistic_reward) else [reward]), *limits]
        return (
            f"<{self.action!r} in round {self.round}, drawn from {mixture}, {', '.join(shown)}{reason}, id {self.id!r}>"
        )
