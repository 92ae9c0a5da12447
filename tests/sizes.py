"""One test in two sizes: small with every change, large in the slow lane."""

from typing import Any

import pytest

LONG = (pytest.mark.slow, pytest.mark.compiled)


def sized(small: Any, large: Any) -> pytest.MarkDecorator:
    """Parametrise a test with its `size`."""
    return pytest.mark.parametrize(
        "size", [pytest.param(small, id="small"), pytest.param(large, id="large", marks=LONG)]
    )


def in_lanes(some: Any, compiled: Any, every: Any = ()) -> list[Any]:
    """Return cases for the interpreted lanes, few for the compiled one, and all of them compiled in the slow one."""
    lanes: list[tuple[Any, Any]] = [(some, ()), (compiled, pytest.mark.compiled), (every, LONG)]
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)
        for cases, marks in lanes
        for case in cases
    ]


def listed(names: str, values: Any, some: Any) -> pytest.MarkDecorator:
    """Parametrise a test with some of these tuples, and with the others in the slow lane."""
    marked = [value if value in some else pytest.param(*value, marks=LONG) for value in values]
    return pytest.mark.parametrize(names, marked)
