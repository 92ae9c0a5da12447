"""Tables are read by name; a pickle can name frames and arrays, and run nothing."""

import pickle
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stagewise_studies.columns import parse_pickle, parse_text
from stagewise_studies.source import DataUnavailable


def named(module: str, name: str) -> bytes:
    """Return a pickle that asks for something by its name."""
    return f"c{module}\n{name}\n.".encode()


def old_frame(columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return a frame as pandas pickled it before 1.0: a block of numbers, a block of text, and the names of each."""
    for name, kind in {"pandas.core.frame": "DataFrame", "pandas.core.internals.managers": "BlockManager"}.items():
        for parent in ("pandas", "pandas.core", "pandas.core.internals"):
            monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
        module = ModuleType(name)
        setattr(module, kind, type(kind, (), {"__module__": name}))
        monkeypatch.setitem(sys.modules, name, module)
    kinds: dict[bool, list[str]] = {}
    for name, column in columns.items():
        kinds.setdefault(column.dtype == object, []).append(name)
    blocks = [np.array([columns[name] for name in names]) for names in kinds.values()]
    names = [{"data": np.array(names, dtype=object), "name": None} for names in kinds.values()]
    state = ([{"data": np.array(list(columns), dtype=object)}], blocks, names, {"0.14.1": {}})
    manager = PickledAs("pandas.core.internals.managers", "BlockManager", state)
    return pickle.dumps(
        PickledAs("pandas.core.frame", "DataFrame", {"_data": manager, "_typ": "dataframe"}), protocol=4
    )


class PickledAs:
    """Something that is pickled as another class's instance with a state."""

    def __init__(self, module: str, kind: str, state: Any) -> None:
        self.reduced = (module, kind, state)

    def __reduce__(self) -> Any:
        module, kind, state = self.reduced
        return getattr(sys.modules[module], kind), (), state


def test_a_frame_is_read_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    ages, sexes = np.array([24.0, np.nan]), np.array(["M", "F"], dtype=object)
    read = parse_pickle(old_frame({"age": ages, "sex": sexes}, monkeypatch))
    np.testing.assert_array_equal(read["age"], ages)
    assert read["sex"].tolist() == ["M", "F"]


def test_a_pickle_that_would_run_something_is_refused() -> None:
    with pytest.raises(DataUnavailable) as caught:
        parse_pickle(named("os", "system"))
    assert (caught.value.details["module"], caught.value.details["name"]) == ("os", "system")


def test_a_line_with_too_few_fields_is_named() -> None:
    with pytest.raises(DataUnavailable) as caught:
        parse_text(b"age,sex\n24,M\n53\n")
    assert caught.value.details == {"line_number": 3, "rows_count": 1, "names_count": 2}
