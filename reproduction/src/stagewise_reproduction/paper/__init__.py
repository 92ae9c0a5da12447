"""The figures of the paper: a folder each, which `catalogue` finds by listing."""
