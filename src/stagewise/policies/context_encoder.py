"""Encode users by name: their numbers, their segments and the eligible actions."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.engine.batch import scale_to_range
from stagewise.engine.compile import Floats
from stagewise.policies.context_caps import ACTION, FIRST_NUMBER
from stagewise.problem.checks import BOOL_TYPES, check_mapping, check_number, is_listing
from stagewise.problem.context import Context, describe_range_error, parse_ranges
from stagewise.problem.division import Division
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import join_names, safe_repr, suggest_name
from stagewise.problem.proposal import Offer, parse_proposal

DOUBLE, NO_NUMBERS = np.dtype(np.float64), np.array(None)


class ContextEncoder:
    """Encodes contexts and actions that are given by name."""

    actions: Sequence[str]
    safe: str
    context: Sequence[str] | Mapping[str, Sequence[float]]
    score_range: tuple[float, float] = (0.0, 1.0)
    needs_proposal: bool = False

    @property
    @abstractmethod
    def divisions(self) -> tuple[Division, ...]:
        """The divisions of users, in the order of a row's columns."""

    @cached_property
    def segment_columns(self) -> tuple[str, ...]:
        """The columns of a context that hold segments."""
        return tuple(dict.fromkeys(column for division in self.divisions for column in division.columns))

    @cached_property
    def context_names(self) -> tuple[str, ...]:
        """The names of all numbers and segments of a context."""
        return (*self.context, *self.segment_columns)

    @cached_property
    def ranges(self) -> tuple[tuple[str, tuple[float, float]], ...]:
        """The numbers of a context with their ranges."""
        return tuple(parse_ranges(self.context).items())

    @cached_property
    def ends(self) -> Floats:
        """The ranges of the numbers (n, 2)."""
        return np.array([ends for _, ends in self.ranges]).reshape(-1, 2)

    def encode_context(self, context: Any, only: Any = None, propose: Any = None, scores: Any = None) -> Context:
        """Return the context of one user from a mapping by name, with the eligible actions and the proposal."""
        values = context if type(context) is dict else self._parse_mapping(context)
        if values.keys() != self._context_keys:
            self._refuse_names(values)
        numbers = np.empty(len(self.context))
        wrong = scale_to_range(self._values_in(values), self.ends, numbers)
        if wrong >= 0:
            self._refuse_value(wrong, values)
        places = [division.encode(values) for division in self.divisions]
        eligible = None if only is None else self.get_action_indices(only)
        if propose is None and scores is None:
            if self.needs_proposal:
                text = "this problem has no reward to learn, so nothing can be chosen; give propose= or scores="
                raise InvalidActions(ErrorCode.MISSING_VALUE, text)
            return Context.from_checked(numbers, places, eligible)
        offer = self._offer if eligible is None else self._offer._replace(eligible=eligible)
        return Context.from_checked(numbers, places, eligible, parse_proposal(propose, scores, offer, self.score_range))

    def _parse_mapping(self, context: Any) -> dict[str, Any]:
        """Return any other context as a dictionary."""
        values = {} if context is None and not self.context_names else context
        if hasattr(values, "to_dict") and getattr(values, "ndim", 0) == 1:  # a row of a data frame
            values = values.to_dict()
        if not isinstance(values, Mapping):
            rule = f"a mapping of {join_names(self.context_names)}"
            raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "the context", context, rule)
        return check_mapping(values, "the context", InvalidActions)

    @cached_property
    def _context_keys(self) -> frozenset[str]:
        return frozenset(self.context_names)

    def _values_in(self, context: Mapping[str, Any]) -> Floats:
        """Return the numbers of a context, in order: at once where all are plain, else one by one."""
        numbers = [context[name] for name in self.context]
        try:
            values = np.array(numbers)
        except Exception:  # an object's own code can raise anything
            values = NO_NUMBERS
        if values.dtype is DOUBLE and values.ndim == 1:
            return values
        pairs = zip(numbers, self.context, strict=True)
        return np.array([check_context_number(value, name) for value, name in pairs], dtype=np.float64)

    def _refuse_value(self, index: int, context: Mapping[str, Any]) -> None:
        """Raise InvalidActions for a number outside its range."""
        name, (low, high) = self.ranges[index]
        value = context[name] if type(context[name]) is float else check_context_number(context[name], name)
        raise InvalidActions(ErrorCode.CONTEXT_OUT_OF_RANGE, describe_range_error(name, value, low, high))

    def _refuse_names(self, context: Mapping[Any, Any]) -> None:
        """Raise InvalidActions for missing or unknown names."""
        for name in context:
            if name not in self.context_names:
                other = suggest_name(name, self.context_names)
                raise InvalidActions(
                    ErrorCode.UNKNOWN_CONTEXT_FIELD,
                    "the context has {name}, which the problem does not declare{other}",
                    name=safe_repr(name),
                    other=other,
                )
        absent = join_names([name for name in self.context_names if name not in context])
        raise InvalidActions(
            ErrorCode.MISSING_CONTEXT_FIELD,
            "the context lacks {absent}; every call needs every number and segment",
            absent=absent,
        )

    def get_action_indices(self, only: Any) -> list[int]:
        """Return the indices of actions given by name."""
        if isinstance(only, str) or not (is_listing(only) or isinstance(only, Set)):
            raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "only", only, "a list of actions")
        return [self.get_action_index(name) for name in only]

    def get_action_index(self, name: Any) -> int:
        """Return the index of an action."""
        index = self._indices.get(name) if isinstance(name, str) else None
        if index is None:
            other = suggest_name(name, self.actions) or f"; they are {join_names(self.actions)}"
            raise InvalidActions(
                ErrorCode.UNKNOWN_ACTION,
                "{name} is not an action of this problem{other}",
                name=safe_repr(name),
                other=other,
            )
        return index

    @cached_property
    def _offer(self) -> Offer:
        """What a proposal may name, if all actions are eligible."""
        return Offer(self.actions, self.get_action_index, self._indices[self.safe], None)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.actions)}


def check_context_number(value: Any, name: str) -> float:
    """Return a number of a context; True counts as 1 and False as 0."""
    return 1.0 * value if isinstance(value, BOOL_TYPES) else check_number(value, repr(name), InvalidActions)


def build_rows(problem: ContextEncoder, actions: Sequence[int], columns: Mapping[str, Any]) -> Floats:
    """Return the rows (n, D) of action indices and of columns by name: numbers in the user's units, names of segments.

    >>> import stagewise as sw
    >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0, by="country")}}
    >>> problem = sw.Problem(actions=["nothing", "offer"], safe="nothing", context={"age": (20, 60)}, **signals)
    >>> build_rows(problem, [0, 1], {"age": [40, 60], "country": ["NZ", "AU"]})[:, :3]
    array([[0., 1., 0.],
           [1., 1., 1.]])
    """
    rows = np.ones((len(actions), FIRST_NUMBER + len(problem.context) + len(problem.divisions)))
    rows[:, ACTION] = actions
    for column, (name, (low, high)) in enumerate(problem.ranges, FIRST_NUMBER):
        rows[:, column] = scale_numbers(np.asarray(columns[name], dtype=np.float64), low, high)
    for column, division in enumerate(problem.divisions, FIRST_NUMBER + len(problem.context)):
        rows[:, column] = division.encode_columns(columns)
    return rows


def scale_numbers(values: Floats, low: float, high: float) -> Floats:
    """Return numbers scaled from their range to [−1, 1], bitwise equal to `kernels.scaling`."""
    return np.asarray(np.clip((2.0 * values - (low + high)) / (high - low), -1.0, 1.0))
