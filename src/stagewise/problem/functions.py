"""A finite class of functions, one of which is the truth: a table of values, or callables of an action's features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, as_array, frozen, is_listing, mapping_of, number, shown, table_of
from stagewise.problem.errors import InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.tables import in_order

REMEMBERED = 10_000  # actions whose values are kept, so that a callable is not asked twice


@dataclass(frozen=True, eq=False, repr=False)
class FunctionClass:
    """The functions that a mean reward or cost may be.

    Either a table (F, K) with the value of every function at every arm; or, with `features` (K, d), at every listed
    action; or F callables of a feature vector (d,), each equal to itself whenever asked. Callables given together with
    `features` are asked once, there, and become a table. Tables can be saved, callables cannot. Functions that are
    given twice count once.

    >>> FunctionClass([[0.1, 0.5], [0.1, 0.9], [0.1, 0.5]])
    FunctionClass(2 functions of 2 arms)
    >>> FunctionClass([lambda x: x[0], lambda x: x[0] ** 2], features=[[0.0], [0.5]]).functions
    array([[0.  , 0.5 ],
           [0.  , 0.25]])
    """

    functions: Any
    """A table (F, K) with one row per function, or a list of F callables."""
    features: Any = None
    """The listed actions (K, d) that the columns of a table belong to; None: arms, or callables asked as needed."""

    _columns: dict[bytes, Floats] = field(init=False)  # by features: the value of every function

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", {})
        functions = self.functions
        if isinstance(functions, list | tuple) and functions and all(callable(entry) for entry in functions):
            object.__setattr__(self, "functions", different(functions))
            if self.features is None:
                return
            listed = listed_features(self.features)
            functions = np.stack([self._asked(row, InvalidProblem) for row in listed], axis=1)
        table = merged(table_of(functions, "a class of functions", InvalidProblem, "function")[0] + 0.0)
        object.__setattr__(self, "functions", frozen(table))
        if self.features is not None:
            object.__setattr__(self, "features", frozen(listed_features(self.features)))
            self._list_columns()

    def _list_columns(self) -> None:
        if len(self.features) != self.functions.shape[1]:
            raise InvalidProblem(
                f"the table of functions has {self.functions.shape[1]} columns and there are {len(self.features)} "
                "listed actions; it needs one column for each"
            )
        for place, row in enumerate(self.features):
            column = self._columns.setdefault(row.tobytes(), self.functions[:, place])
            if not np.array_equal(column, self.functions[:, place]):
                raise InvalidProblem(
                    f"the listed actions hold {shown(row.tolist())} twice, with other values; one must go"
                )

    @property
    def callables(self) -> bool:
        """Whether the functions are known by asking only."""
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
            return f"FunctionClass({len(self)} callables: {names})"
        of = "arms" if self.features is None else "listed actions"
        return f"FunctionClass({len(self)} functions of {self.functions.shape[1]} {of})"

    def over(self, features: Floats, error: type[StagewiseError] = InvalidActions) -> Floats:
        """Return the value (F, n) of every function at actions with these features (n, d)."""
        rows, _ = table_of(features, "the actions", error)
        return np.stack([self._column(row, error) for row in rows + 0.0], axis=1)  # + 0.0: there is one zero

    def _column(self, row: Floats, error: type[StagewiseError]) -> Floats:
        column = self._columns.get(row.tobytes())
        if column is None:
            if not self.callables:
                raise error(
                    f"the action {shown(row.tolist())} is not among the {len(self.features)} listed ones that the "
                    "class of functions is a table of"
                )
            if len(self._columns) >= REMEMBERED:
                self._columns.clear()
            column = self._columns[row.tobytes()] = self._asked(row, error)
        return column

    def _asked(self, row: Floats, error: type[StagewiseError]) -> Floats:
        """Return what every callable says of an action."""
        question = row.copy()
        question.flags.writeable = False
        return np.array([answer(f, question, place, error) for place, f in enumerate(self.functions)])


def answer(function: Callable[[Floats], Any], row: Floats, place: int, error: type[StagewiseError]) -> float:
    """Return one function's value, or say what it did instead."""
    try:
        value = function(row)
    except Exception as reason:
        raise error(
            f"function {place} of a class cannot be asked about the action {shown(row.tolist())}; "
            f"it raised {type(reason).__name__}"
        ) from reason
    if is_listing(value):
        shape = as_array(value, f"the answer of function {place} of a class", error).shape
        raise error(f"function {place} of a class answers with shape {shape}; it must be one number")
    return number(value, f"the value of function {place} of a class at {shown(row.tolist())}", error)


def different(functions: Sequence[Any]) -> tuple[Any, ...]:
    """Return the different callables, in the order they came."""
    try:
        return tuple(dict.fromkeys(functions))
    except TypeError:  # one that cannot be told from others by its hash
        return tuple(functions)


def merged(table: Floats) -> Floats:
    """Return the different rows of a table, in the order they came."""
    _, first = np.unique(table, axis=0, return_index=True)
    return table[np.sort(first)]


def listed_features(features: Any) -> Floats:
    """Return listed actions (K, d)."""
    return table_of(features, "the listed actions of a class", InvalidProblem)[0] + 0.0


GivenClass = FunctionClass | ArrayLike | Sequence[Callable[..., Any]]  # a class, its table (F, K), or its functions


def class_of(value: Any) -> FunctionClass:
    """Return a class of functions, from itself, a table or a list of callables."""
    if isinstance(value, FunctionClass):
        return value
    if not is_listing(value):
        raise InvalidProblem(
            f"a class of functions is {shown(value)}; it must be a FunctionClass, a table of values with one row per "
            "function, or a list of callables"
        )
    return FunctionClass(value)


def classes_of(value: Any, names: Sequence[str]) -> Any:
    """Return one class for all costs, or one for each as a list or a mapping by name, as it was given."""
    if isinstance(value, Mapping):
        given = in_order(mapping_of(value, "cost_class"), names, "cost_class")
        return {name: class_of(entry) for name, entry in zip(names, given, strict=True)}
    if not isinstance(value, list | tuple | np.ndarray) or not len(value) or not holds_classes(value[0]):
        return class_of(value)
    if len(value) != len(names):
        raise InvalidProblem(
            f"cost_class has {len(value)} classes; it needs one for all costs, or one for each of {', '.join(names)}"
        )
    return [class_of(entry) for entry in value]


def holds_classes(first: Any) -> bool:
    """Say whether the first of several entries is a class of its own, not a function of one class."""
    if isinstance(first, FunctionClass):
        return True
    listing = isinstance(first, list | tuple | np.ndarray) and is_listing(first)
    return listing and len(first) > 0 and (is_listing(first[0]) or callable(first[0]))
