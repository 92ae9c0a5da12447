"""Studies on real data: a module each in `cases`, found by listing; `python -m stagewise_studies` runs them."""
