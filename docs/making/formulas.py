"""Render formulas as MathML when the site is built: no script, no external request, and a font of the site's own.

The font is STIX Two Math (SIL Open Font License) from the package `ziamath`. Without a mathematical font, brackets and
roots would not grow with their content.
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


def convert(latex: str, block: bool) -> str:
    r"""Return a formula as MathML; one with a \tag stands beside its number."""
    numbered = block and r"\tag" in latex
    source = rf"\begin{{equation}}{latex}\end{{equation}}" if numbered else latex
    return CONVERTER.convert_with_local_state(source, displaystyle=block)


def render(page: Any, node: nodes.Element, block: bool) -> str:
    """Return a node's MathML; an invalid formula is shown as it is, with a warning."""
    latex = node.astext().strip()
    try:
        return convert(latex, block)
    except LatexError as error:
        LOG.warning("not a formula: %s: %s", " ".join(latex.split()), error, location=node, type="formula")
        return f"<code>{page.encode(latex)}</code>"


def visit_inline(page: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    page.body.append(render(page, node, block=False))
    raise nodes.SkipNode


def visit_block(page: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls by itself where it is wider than the page."""
    page.body.append(f'<div class="formula" tabindex="0">{render(page, node, block=True)}</div>\n')
    raise nodes.SkipNode


def copy_font(app: Any) -> None:
    """Copy the font beside the style sheet that uses it."""
    if app.builder.format == "html":
        target = Path(app.outdir) / "_static"
        target.mkdir(parents=True, exist_ok=True)
        (target / FONT).write_bytes(files("ziamath").joinpath("fonts", FONT).read_bytes())


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("write-started", lambda app, builder: copy_font(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
