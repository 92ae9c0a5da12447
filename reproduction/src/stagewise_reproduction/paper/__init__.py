"""The figures of the paper, one folder each; `catalogue` finds them."""
