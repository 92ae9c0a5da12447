"""Audit of a log: verify its chain, replay its decisions, explain and export them."""
