"""Fixtures that all tests of the server may ask for."""

from tests.server.servers import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]
