"""Audit of a log: verify its chain, replay its decisions, explain, export and copy them."""
