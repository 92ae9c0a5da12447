"""Sphinx settings."""

import sys
from pathlib import Path

import stagewise

sys.path.insert(0, str(Path(__file__).parent / "making"))  # our extensions

project = "stagewise"
author = copyright = "the stagewise developers"
version = release = stagewise.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "api_pages", "certificates", "formulas"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "stagewise"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_use_index = False  # reference/api.md lists every name
html_show_search_summary = False  # a summary is fetched, which a browser refuses to pages that were opened from a disk
nb_execution_mode = "force"  # notebooks are kept without outputs
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
exclude_patterns = ["_build", "gallery/cards.md", "making"]
autodoc_typehints = "description"
napoleon_use_ivar = True  # an Attributes section lists attributes; their own docstrings describe them
# Anchors within tables are unknown to MyST: check.py follows links. A name that several classes have is not one target.
suppress_warnings = ["myst.xref_missing", "ref.python"]
default_role = "code"  # `names` in docstrings
