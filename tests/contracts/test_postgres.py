"""The store on a PostgreSQL server keeps the contract."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.contracts.store import StoreContract
from tests.server.servers import postgres

from stagewise.server.store.base import Store

__all__ = ["postgres"]


class TestPostgres(StoreContract):
    @pytest.fixture
    def opened(self, postgres: str) -> Callable[..., Store]:
        from stagewise.server.store.postgres import PostgresStore

        return partial(PostgresStore, postgres)
