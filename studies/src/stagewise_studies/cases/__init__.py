"""The studies, a module each; what a module must have stands in `stagewise_studies.study`."""
