"""The store in a SQLite file keeps the contract."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.contracts.store import StoreContract

from stagewise.server.store.base import Store
from stagewise.server.store.sqlite import SqliteStore


class TestSqlite(StoreContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[..., Store]:
        return partial(SqliteStore, tmp_path / "desk.db")
