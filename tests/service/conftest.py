"""Fixtures that all tests of the desk may ask for."""

from tests.service.servers import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]
