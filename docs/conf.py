"""Sphinx settings."""

import stagewise

project = "stagewise"
author = copyright = "the stagewise developers"
version = release = stagewise.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "furo"
exclude_patterns = ["_build"]
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing"]
