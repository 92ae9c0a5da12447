"""Servers for the tests of the desk."""

from tests.service.servers import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]
