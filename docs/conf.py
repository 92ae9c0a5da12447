"""Sphinx settings."""

import sys
from pathlib import Path

import stagewise

sys.path.insert(0, str(Path(__file__).parent / "making"))  # what makes the site, beside what it is made of

project = "stagewise"
author = copyright = "the stagewise developers"
version = release = stagewise.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "certificates", "formulas"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "stagewise"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_search_summary = False  # a summary is fetched, which a browser refuses to pages that were opened from a disk
nb_execution_mode = "force"  # notebooks are kept without outputs
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
exclude_patterns = ["_build", "gallery/cards.md", "making"]
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing"]  # anchors within tables are not known to it: links are followed in check.py
