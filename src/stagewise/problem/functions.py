"""Finite classes of functions: tables of values, or callables of an action's features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.checks import (
    Floats,
    as_array,
    check_length,
    check_mapping,
    check_number,
    check_table,
    copy_read_only,
    is_listing,
    order_by_name,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr

CACHE_SIZE = 10_000  # actions whose values are cached


@dataclass(frozen=True, eq=False, repr=False)
class FiniteFunctionClass:
    """A finite class of functions that contains a mean reward or cost.

    Callables must be deterministic; with `features` they are evaluated once, there, and become a table. Tables can be
    saved, callables cannot. Duplicate functions count once.

    Raises:
        InvalidProblem: The table is not rectangular and finite, or does not fit the features.

    Example:
        >>> FiniteFunctionClass([[0.1, 0.5], [0.1, 0.9], [0.1, 0.5]])
        FiniteFunctionClass(2 functions of 2 arms)
        >>> FiniteFunctionClass([lambda x: x[0], lambda x: x[0] ** 2], features=[[0.0], [0.5]]).functions
        array([[0.  , 0.5 ],
               [0.  , 0.25]])
    """

    functions: Any
    """A table (F, K) with one row per function, or a list of F callables."""
    features: Any = None
    """The listed actions (K, d) of the columns; None: arms, or callables evaluated on demand."""

    _columns: dict[bytes, Floats] = field(init=False)  # by features: the value of every function

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", {})
        functions = self.functions
        if isinstance(functions, list | tuple) and functions and all(callable(entry) for entry in functions):
            object.__setattr__(self, "functions", unique_functions(functions))
            if self.features is None:
                return
            listed = check_listed_features(self.features)
            functions = np.stack([self._evaluate_callables(row, InvalidProblem) for row in listed], axis=1)
        table = unique_rows(check_table(functions, "a class of functions", InvalidProblem, "function")[0] + 0.0)
        object.__setattr__(self, "functions", copy_read_only(table))
        if self.features is not None:
            object.__setattr__(self, "features", copy_read_only(check_listed_features(self.features)))
            self._list_columns()

    def _list_columns(self) -> None:
        if len(self.features) != self.functions.shape[1]:
            subject, columns = "the number of columns of the table", self.functions.shape[1]
            actions = len(self.features)
            other = "that of the listed actions"
            raise InvalidProblem.must_agree(ErrorCode.DIMENSION_MISMATCH, subject, columns, other, actions)
        for index, row in enumerate(self.features):
            column = self._columns.setdefault(row.tobytes(), self.functions[:, index])
            if not np.array_equal(column, self.functions[:, index]):
                problem = "the listed actions contain {row} twice with different values"
                raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, problem, row=safe_repr(row.tolist()))

    @property
    def callables(self) -> bool:
        """Whether the functions are callables."""
        return isinstance(self.functions, tuple)

    @property
    def arms(self) -> int | None:
        """The number of arms, or None for functions of features."""
        return None if self.callables or self.features is not None else int(self.functions.shape[1])

    def __len__(self) -> int:
        return len(self.functions)

    def __repr__(self) -> str:
        if self.callables:
            names = ", ".join(getattr(f, "__name__", type(f).__name__) for f in self.functions)
            return f"FiniteFunctionClass({len(self)} callables: {names})"
        of = "arms" if self.features is None else "listed actions"
        return f"FiniteFunctionClass({len(self)} functions of {self.functions.shape[1]} {of})"

    def evaluate(self, features: Floats, error: type[StagewiseError] = InvalidActions) -> Floats:
        """Return the value (F, n) of every function at actions with these features (n, d)."""
        rows, _ = check_table(features, "the actions", error)
        return np.stack([self._column(row, error) for row in rows + 0.0], axis=1)  # + 0.0 turns -0.0 into 0.0

    def _column(self, row: Floats, error: type[StagewiseError]) -> Floats:
        column = self._columns.get(row.tobytes())
        if column is None:
            if not self.callables:
                rule = f"one of the {len(self.features)} listed ones that the class of functions is a table of"
                raise error.must_be(ErrorCode.UNKNOWN_ACTION, "an action", row.tolist(), rule)
            if len(self._columns) >= CACHE_SIZE:
                self._columns.clear()
            column = self._columns[row.tobytes()] = self._evaluate_callables(row, error)
        return column

    def _evaluate_callables(self, row: Floats, error: type[StagewiseError]) -> Floats:
        """Return the values of all callables at an action."""
        features = row.copy()
        features.flags.writeable = False
        return np.array([evaluate_function(f, features, index, error) for index, f in enumerate(self.functions)])


def evaluate_function(function: Callable[[Floats], Any], row: Floats, index: int, error: type[StagewiseError]) -> float:
    """Return the value of one function, or raise an error."""
    try:
        value = function(row)
    except Exception as reason:
        template = "function {index} of a class failed at the action {row}; it raised {name}"
        data = {"index": index, "row": safe_repr(row.tolist()), "name": type(reason).__name__}
        raise error(ErrorCode.CALLBACK_FAILED, template, **data) from reason
    if is_listing(value):
        shape = as_array(value, f"the answer of function {index} of a class", error).shape
        subject, rule = f"the shape of function {index}'s value", "that of one number"
        raise error.must_be(ErrorCode.WRONG_SHAPE, subject, shape, rule)
    return check_number(value, f"the value of function {index} of a class at {safe_repr(row.tolist())}", error)


def unique_functions(functions: Sequence[Any]) -> tuple[Any, ...]:
    """Return the different callables, in order."""
    try:
        return tuple(dict.fromkeys(functions))
    except TypeError:  # an unhashable callable
        return tuple(functions)


def unique_rows(table: Floats) -> Floats:
    """Return the different rows of a table, in order."""
    _, first = np.unique(table, axis=0, return_index=True)
    return table[np.sort(first)]


def check_listed_features(features: Any) -> Floats:
    """Return listed actions (K, d)."""
    return check_table(features, "the listed actions of a class", InvalidProblem)[0] + 0.0


GivenClass = (
    FiniteFunctionClass | ArrayLike | Sequence[Callable[..., Any]]
)  # a class, its table (F, K), or its functions


def parse_function_class(value: Any) -> FiniteFunctionClass:
    """Return a class of functions, from itself, a table or a list of callables."""
    if isinstance(value, FiniteFunctionClass):
        return value
    if not is_listing(value):
        rule = "a FiniteFunctionClass, a table of values with one row per function, or a list of callables"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "a class of functions", value, rule)
    return FiniteFunctionClass(value)


def parse_function_classes(value: Any, names: Sequence[str]) -> Any:
    """Return one class for all costs, or one for each as a list or a mapping by name."""
    if isinstance(value, Mapping):
        classes = order_by_name(check_mapping(value, "cost_class"), names, "cost_class")
        return {name: parse_function_class(entry) for name, entry in zip(names, classes, strict=True)}
    if not isinstance(value, list | tuple | np.ndarray) or not len(value) or not is_class_list(value[0]):
        return parse_function_class(value)
    check_length(list(value), names, "cost_class")
    return [parse_function_class(entry) for entry in value]


def is_class_list(first: Any) -> bool:
    """Return whether the first of several entries is a class, not a function of one class."""
    if isinstance(first, FiniteFunctionClass):
        return True
    listing = isinstance(first, list | tuple | np.ndarray) and is_listing(first)
    return listing and len(first) > 0 and (is_listing(first[0]) or callable(first[0]))
