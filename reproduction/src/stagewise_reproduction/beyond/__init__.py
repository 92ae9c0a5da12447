"""Experiments that are not in the paper, one folder each; `catalogue` finds them."""
