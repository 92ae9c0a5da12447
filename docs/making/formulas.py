"""Formulas as MathML, written when the pages are: no script, no other machine, and a font of the site's own.

The font is STIX Two Math (SIL Open Font License), as the package `ziamath` carries it. Without one, brackets and roots
keep the size of a letter on machines that have no mathematical font of their own.
"""

from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

FONT = "STIXTwoMath-Regular.ttf"
CONVERTER = LatexToMathML(fancy_error=False, annotation=False, allow_unreliable_rendering=True)
LOG = logging.getLogger(__name__)


def mathml(latex: str, block: bool) -> str:
    r"""Return a formula as MathML; one with a \tag stands beside its number."""
    numbered = block and r"\tag" in latex
    asked = rf"\begin{{equation}}{latex}\end{{equation}}" if numbered else latex
    return CONVERTER.convert_with_local_state(asked, displaystyle=block)


def written(page: Any, node: nodes.Element, block: bool) -> str:
    """Return a node's MathML; what is no formula is a warning, with its place, and stays visible."""
    latex = node.astext().strip()
    try:
        return mathml(latex, block)
    except LatexError as error:
        LOG.warning("not a formula: %s: %s", " ".join(latex.split()), error, location=node, type="formula")
        return f"<code>{page.encode(latex)}</code>"


def inline(page: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    page.body.append(written(page, node, block=False))
    raise nodes.SkipNode


def display(page: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls by itself where it is wider than the page."""
    page.body.append(f'<div class="formula" tabindex="0">{written(page, node, block=True)}</div>\n')
    raise nodes.SkipNode


def font_copied(app: Any) -> None:
    """Put the font beside the style sheet that names it."""
    if app.builder.format == "html":
        target = Path(app.outdir) / "_static"
        target.mkdir(parents=True, exist_ok=True)
        (target / FONT).write_bytes(files("ziamath").joinpath("fonts", FONT).read_bytes())


def setup(app: Any) -> dict[str, bool]:
    """Be the site's renderer of formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("write-started", lambda app, builder: font_copied(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
