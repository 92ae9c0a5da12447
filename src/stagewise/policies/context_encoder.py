"""Encode users by name: their numbers, categories and segments, and the eligible actions."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.batch import scale_to_range
from stagewise.engine.compile import Flags, Floats
from stagewise.policies.context_caps import ACTION, FIRST_NUMBER
from stagewise.problem.checks import check_mapping, is_listing
from stagewise.problem.columns import get_column, map_unique
from stagewise.problem.context import ContextVector, check_segment_name
from stagewise.problem.context_columns import (
    Boolean,
    Category,
    ColumnValues,
    ContextColumn,
    Number,
    NumericColumn,
    parse_context,
)
from stagewise.problem.division import Division, ScoreDivision
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import join_names, safe_repr, suggest_name
from stagewise.problem.proposal import Offer, Proposal, check_one_kind, parse_proposal, parse_weights

TIME = "at"  # the column of the times of decisions
DOUBLE, NO_NUMBERS = np.dtype(np.float64), np.array(None)
NONE_CLIPPED: tuple[str, ...] = ()


class CategorySlot(NamedTuple):
    """A category, and where its features are."""

    name: str
    category: Category
    indices: Mapping[str, int]
    """Of the levels, by name."""
    rows: Sequence[Floats]
    """The features of each level."""
    features: slice


class ContextRows(NamedTuple):
    """The contexts of many users, encoded."""

    features: Floats
    """(n, c) features, as a `Context` has them."""
    segments: Floats
    """(n, s) keys of segments."""
    refused: dict[int, InvalidActions]
    """The errors by row; the features of these rows are not to be used."""
    clipped: dict[str, Flags]
    """By number, which rows (n,) were beyond its range and are not refused."""

    def count_clipped(self) -> dict[str, int]:
        """Return how many values of each number were beyond its range."""
        return count_clipped([self.clipped])


def count_clipped(batches: Sequence[Mapping[str, Flags]], rows: Any = slice(None)) -> dict[str, int]:
    """Return how many values of each number were beyond its range, in some rows of all batches together."""
    names = batches[0] if batches else ()
    counts = {name: int(np.concatenate([one[name] for one in batches])[rows].sum()) for name in names}
    return {name: count for name, count in counts.items() if count}


class ContextEncoder:
    """Encodes contexts and actions that are given by name."""

    action_names: Sequence[str]
    safe_name: str
    context: Sequence[str] | Mapping[str, Sequence[float] | ContextColumn]
    score_range: tuple[float, float] = (0.0, 1.0)
    needs_times: bool = False  # a mean drifts, so that every decision has a time
    needs_proposal: bool = False

    @property
    @abstractmethod
    def divisions(self) -> tuple[Division, ...]:
        """The divisions of users, in the order of a row's columns."""

    @cached_property
    def context_columns(self) -> dict[str, ContextColumn]:
        return parse_context(self.context)

    @cached_property
    def segment_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for division in self.divisions for column in division.columns))

    @cached_property
    def score_columns(self) -> dict[str, NumericColumn]:
        scores = [division.score for division in self.divisions if isinstance(division, ScoreDivision)]
        named = [score for score in scores if score.weights is None and score.name not in self.context_columns]
        return {score.name: Number(*score.ends) for score in named}

    @cached_property
    def declared_columns(self) -> dict[str, ContextColumn]:
        """The declared columns of a context, and those of scores."""
        return {**self.context_columns, **self.score_columns}

    @cached_property
    def context_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.declared_columns, *self.segment_columns)))

    @cached_property
    def numbers(self) -> dict[str, NumericColumn]:
        """The declared columns that are one number: numbers, booleans and dates."""
        return {name: one for name, one in self.context_columns.items() if isinstance(one, NumericColumn)}

    @cached_property
    def categories(self) -> dict[str, Category]:
        return {name: one for name, one in self.context_columns.items() if isinstance(one, Category)}

    @cached_property
    def text_columns(self) -> tuple[str, ...]:
        """The categories, and the segments that are no declared number."""
        segments = (name for name in self.segment_columns if name not in self.numbers)
        return tuple(dict.fromkeys((*self.categories, *segments)))

    @cached_property
    def ranges(self) -> tuple[tuple[str, tuple[float, float]], ...]:
        return tuple((name, column.ends) for name, column in self.numbers.items())

    @cached_property
    def ends(self) -> Floats:
        """The ranges of the numbers (n, 2)."""
        return np.array([ends for _, ends in self.ranges]).reshape(-1, 2)

    @cached_property
    def category_slots(self) -> tuple[CategorySlot, ...]:
        """The categories with the places of their features, which follow the numbers."""
        slots, first = [], len(self.numbers)
        for name, category in self.categories.items():
            end = first + len(category.labels) - 1
            rows = tuple(category.features)
            slots.append(CategorySlot(name, category, category.indices, rows, slice(first, end)))
            first = end
        return tuple(slots)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features: of numbers, and of the levels of categories but the first."""
        levels = (f"{name}={label}" for name, one in self.categories.items() for label in one.labels[1:])
        return (*self.numbers, *levels)

    def encode_context(self, context: Any, only: Any = None, propose: Any = None, scores: Any = None) -> ContextVector:
        """Return the context of one user from a mapping by name, with the eligible actions and the proposal."""
        values = context if type(context) is dict else self._parse_mapping(context)
        if values.keys() != self._context_keys:
            values = self._fill_absent(values)
        features = np.empty(self._feature_count)
        numbers, clipped = self._scale_plain_numbers(values, features), NONE_CLIPPED
        if numbers is None:
            numbers, clipped = self._read_numbers(values, features)
        read = dict(zip(self._number_names, numbers.tolist(), strict=True)) if self._scores_numbers else {}
        for name, category, indices, rows, at in self.category_slots:
            value = values[name]
            index = indices.get(value) if type(value) is str else None
            if index is None:
                index = int(category.read(value, name)[0])
            features[at] = rows[index]
            read[name] = index
        for name, column in self.score_columns.items():
            read[name] = column.read(values[name], name)[0]
        named = values if not self._declared_segments else {**values, **self._name_segments(values)}
        places = [one.encode(read if isinstance(one, ScoreDivision) else named) for one in self.divisions]
        eligible = None if only is None else self.get_action_indices(only)
        proposal = self._single_proposals.get(propose) if type(propose) is str else None
        is_plain = propose is None and scores is None and not self.needs_proposal
        if not is_plain and (proposal is None or eligible is not None or scores is not None):
            check_one_kind(propose, scores, self.needs_proposal)
            offer = self._offer if eligible is None else self._offer._replace(eligible=eligible)
            proposal = parse_proposal(propose, scores, offer, self.score_range)
        return ContextVector.from_checked(features, places, eligible, proposal, clipped)

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

    @cached_property
    def _number_names(self) -> tuple[str, ...]:
        return tuple(self.numbers)

    @cached_property
    def _feature_count(self) -> int:
        return len(self.feature_names)

    @cached_property
    def _scores_numbers(self) -> bool:
        """Whether some score sums declared numbers."""
        scores = [division for division in self.divisions if isinstance(division, ScoreDivision)]
        return any(term.name in self.numbers for score in scores for term in score.terms)

    @cached_property
    def _boolean_places(self) -> tuple[int, ...]:
        return tuple(i for i, column in enumerate(self.numbers.values()) if isinstance(column, Boolean))

    @cached_property
    def _declared_segments(self) -> dict[str, ContextColumn]:
        return {name: self.context_columns[name] for name in self.segment_columns if name in self.context_columns}

    def _name_segments(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return the segments of declared columns by name."""
        return {name: column.get_label(values[name], name) for name, column in self._declared_segments.items()}

    @cached_property
    def _get_numbers(self) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function that returns the numbers of a context."""
        return itemgetter(*self.numbers) if len(self.numbers) > 1 else partial(list_values, self._number_names)

    def _scale_plain_numbers(self, context: Mapping[str, Any], features: Floats) -> Floats | None:
        """Write the scaled numbers of a context, and return them, where all are plain and in range; else None."""
        try:
            values = np.array(self._get_numbers(context))
        except Exception:  # an object's own code can raise anything
            values = NO_NUMBERS
        if values.dtype is not DOUBLE or values.ndim != 1 or scale_to_range(values, self.ends, features) >= 0:
            return None
        if self._boolean_places and any(abs(features[i]) != 1.0 for i in self._boolean_places):
            return None
        return values

    def _read_numbers(self, context: Mapping[str, Any], features: Floats) -> tuple[Floats, tuple[str, ...]]:
        """Write the scaled numbers of a context, one by one; return them, and the names of those that were clipped."""
        read = {name: column.read(context[name], name) for name, column in self.numbers.items()}
        numbers = np.array([value for value, _ in read.values()], dtype=np.float64)
        scale_to_range(numbers, self.ends, features)
        return numbers, tuple(name for name, (_, is_clipped) in read.items() if is_clipped)

    def _fill_absent(self, context: Mapping[Any, Any]) -> dict[str, Any]:
        """Return a context with None for absent names that may be missing; raise InvalidActions for other ones."""
        for name in context:
            if name not in self.context_names:
                other = suggest_name(name, self.context_names)
                template = "the context has {name}, which the problem does not declare{other}"
                raise InvalidActions(ErrorCode.UNKNOWN_CONTEXT_FIELD, template, name=safe_repr(name), other=other)
        absent = [name for name in self.context_names if name not in context]
        required = [
            name
            for name in absent
            if name not in self.context_columns or self.context_columns[name].replacement is None
        ]
        if required:
            template = "the context lacks {absent}; every call needs every column without a declared missing=..."
            raise InvalidActions(ErrorCode.MISSING_CONTEXT_FIELD, template, absent=join_names(required))
        return {**context, **dict.fromkeys(absent)}

    def encode_columns(self, columns: Mapping[str, Any], rows: int) -> ContextRows:
        """Return the contexts of many users, each as a decision for that user encodes it, for worlds and tables.

        Args:
            columns: A column of `rows` values for every name of the context.
            rows: The number of users.

        Returns:
            The features and the keys of segments, the errors of users whose context is refused, and which values were
            clipped.

        Raises:
            InvalidActions: A column is missing, or has another length.

        Example:
            >>> import stagewise as sw
            >>> signals = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, model="rates")}}
            >>> signals |= {"action_names": ["nothing", "offer"], "safe_name": "nothing"}
            >>> problem = sw.Problem(context={"age": (20, 60)}, **signals)
            >>> users = problem.encode_columns({"age": [40.0, 99.0]}, 2)
            >>> users.features[0].tolist(), {row: str(error.code) for row, error in users.refused.items()}
            ([0.0], {1: 'context_out_of_range'})
        """
        columns = {name: get_column(columns, name, "context", InvalidActions) for name in self.context_names}
        for name, column in columns.items():
            if column.size != rows:
                subject = f"the length of the column {name!r}"
                raise InvalidActions.must_be(ErrorCode.WRONG_SHAPE, subject, column.size, f"{rows}, the number of rows")
        features, refused = np.zeros((rows, self._feature_count)), dict[int, InvalidActions]()
        read = {name: column.read_column(columns[name], name) for name, column in self.declared_columns.items()}
        names = {name: self._name_column(columns[name], name, read.get(name), refused) for name in self.segment_columns}
        for values in reversed(read.values()):
            refused |= values.refused
        for index, (name, (low, high)) in enumerate(self.ranges):
            features[:, index] = scale_numbers(read[name].values, low, high)
        for name, category, _, _, at in self.category_slots:
            features[:, at] = category.features[np.nan_to_num(read[name].values).astype(np.int64)]
        numbers = {name: one.values for name, one in read.items()}
        segments = [one.encode_columns(numbers if isinstance(one, ScoreDivision) else names) for one in self.divisions]
        kept = np.ones(rows, dtype=np.bool_)
        kept[list(refused)] = False
        clipped = {name: values.clipped & kept for name, values in read.items()}
        keys = np.array(segments, dtype=np.float64).reshape(len(self.divisions), rows).T
        return ContextRows(features, keys, dict(sorted(refused.items())), clipped)

    def _name_column(
        self, column: npt.NDArray[Any], name: str, read: ColumnValues | None, refused: dict[int, InvalidActions]
    ) -> list[str]:
        """Return the segments (n,) of a column by name; an error is added to those by row."""
        if read is not None:
            labels = self.context_columns[name].labels
            return [labels[index] for index in np.nan_to_num(read.values).astype(np.int64).tolist()]

        errors = list[InvalidActions]()

        def find(value: Any) -> str | InvalidActions:
            try:
                return check_segment_name(value, name)
            except InvalidActions as error:
                errors.append(error)
                return error

        found = map_unique(column.tolist(), find)
        if not errors:
            return found
        refused |= {row: one for row, one in enumerate(found) if isinstance(one, InvalidActions)}
        return [one if isinstance(one, str) else "" for one in found]

    def get_action_indices(self, only: Any) -> list[int]:
        """Return the indices of actions given by name."""
        if isinstance(only, str) or not (is_listing(only) or isinstance(only, Set)):
            raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "only", only, "a list of actions")
        return [self.get_action_index(name) for name in only]

    def get_action_index(self, name: Any) -> int:
        index = self._indices.get(name) if isinstance(name, str) else None
        if index is None:
            other = suggest_name(name, self.action_names) or f"; they are {join_names(self.action_names)}"
            template = "{name} is not an action of this problem{other}"
            raise InvalidActions(ErrorCode.UNKNOWN_ACTION, template, name=safe_repr(name), other=other)
        return index

    @cached_property
    def _offer(self) -> Offer:
        """What a proposal may name, if all actions are eligible."""
        return Offer(self.action_names, self.get_action_index, self._indices[self.safe_name], None)

    @cached_property
    def _single_proposals(self) -> dict[str, Proposal]:
        """The proposal of each action alone, if all actions are eligible."""
        proposals = {name: Proposal(parse_weights(name, self._offer), is_scores=False) for name in self.action_names}
        for proposal in proposals.values():
            proposal.values.flags.writeable = False
        return proposals

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.action_names)}


def list_values(names: Sequence[str], context: Mapping[str, Any]) -> list[Any]:
    """Return the values of some names of a context."""
    return [context[name] for name in names]


def build_rows(actions: Sequence[int], contexts: ContextRows, times: Any = None) -> Floats:
    """Return the rows (n, D) of action indices and encoded contexts: the action, 1, features, segments, the time.

    `times` are those of the decisions, in seconds; None: the policy needs none.
    """
    rows = np.ones((len(actions), FIRST_NUMBER))
    rows[:, ACTION] = actions
    columns = [rows, contexts.features, contexts.segments]
    return np.concatenate([*columns, *([] if times is None else [np.reshape(times, (-1, 1))])], axis=1)


def scale_numbers(values: Floats, low: float, high: float) -> Floats:
    """Return numbers scaled from their range to [−1, 1], bitwise equal to `engine.batch.scale_to_range`."""
    return np.asarray(np.clip((2.0 * values - (low + high)) / (high - low), -1.0, 1.0))
