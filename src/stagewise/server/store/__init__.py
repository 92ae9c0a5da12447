"""Stores of the log: a SQLite file or PostgreSQL."""
