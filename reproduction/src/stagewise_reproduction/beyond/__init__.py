"""Experiments that are not in the paper: a folder each, which `catalogue` finds by listing."""
