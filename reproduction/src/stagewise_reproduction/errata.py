"""The errata for the report, read from docs/explanation/errata.md (the installed package has a copy)."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PATHS = (HERE / "errata.md", HERE.parents[2] / "docs" / "explanation" / "errata.md")
ROW = re.compile(r'^\| <a id="e(\d+)"></a>E\d+ \| (.*) \|$')
WORDS = {
    r"\tau": "τ", r"\alpha": "α", r"\beta": "β", r"\delta": "δ", r"\Delta": "Δ", r"\lambda": "λ", r"\theta": "θ",
    r"\mu": "μ", r"\nu": "ν", r"\pi": "π", r"\gamma": "γ", r"\Gamma": "Γ", r"\Sigma": "Σ", r"\sigma": "σ",
    r"\xi": "ξ", r"\eta": "η", r"\rho": "ρ", r"\varepsilon": "ε", r"\le": "≤", r"\ge": "≥", r"\ne": "≠",
    r"\in": "∈", r"\sum": "Σ", r"\to": "→", r"\cdot": "·", r"\cdots": "…", r"\dots": "…", r"\ldots": "…",
    r"\infty": "∞", r"\lVert": "‖", r"\rVert": "‖", r"\langle": "<", r"\rangle": ">", r"\perp": "⊥", r"\top": "ᵀ",
    r"\times": "×", r"\approx": "≈", r"\sim": "~", r"\pm": "±", r"\quad": " ", r"\|": "‖", r"\min": "min",
    r"\max": "max", r"\log": "log", r"\det": "det", r"\Pr": "P", r"\star": "*", r"\ast": "*", r"\exp": "exp",
    r"\lfloor": "⌊", r"\rfloor": "⌋", r"\subseteq": "⊆", r"\cup": "∪", r"\forall": "∀",
}  # fmt: skip


class Erratum(NamedTuple):
    """One entry of the errata."""

    number: int
    where: str
    says: str
    why: str
    ours: str
    kind: str


@cache
def load_errata() -> list[Erratum]:
    """Return all errata."""
    index = next((index for index in PATHS if index.exists()), None)
    if index is None:
        return []
    rows = [ROW.match(line) for line in index.read_text(encoding="utf-8").splitlines()]
    found = []
    for row in rows:
        cells = [strip_markup(cell) for cell in row.group(2).split(" | ")] if row else []
        if row and len(cells) == 5:
            found.append(Erratum(int(row.group(1)), *cells))
    return found


def strip_markup(text: str) -> str:
    r"""Return a cell of the table without Markdown and LaTeX.

    >>> strip_markup(r"at $x_0=0$, $\frac{1-r_0}{\tau-c_0}$, see [a page](theory/rays.md)")
    'at x_0=0, (1-r_0)/(τ-c_0), see a page'
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("$", "").replace("`", "").replace("**", "")
    text = re.sub(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\t?frac(\w)(\w)", r"\1/\2", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"√(\1)", text).replace(r"\sqrt", "√")
    text = re.sub(r"\\(?:mathcal|mathrm|text|mathbb|operatorname|bar|hat|widehat|tilde|widetilde|mathbf)\s*", "", text)
    for word in sorted(WORDS, key=len, reverse=True):
        text = re.sub(re.escape(word) + r"(?![A-Za-z])", WORDS[word], text)
    text = re.sub(r"\\[,;!: ]", " ", text)
    text = re.sub(r"\\([A-Za-z]+)", r"\1", text).replace("{", "").replace("}", "").replace("\\", "")
    return re.sub(r"\s+", " ", text).strip()
