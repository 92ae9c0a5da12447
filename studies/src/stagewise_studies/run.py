"""Run a study: write result.json, picture.png and index.html."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagewise.files.paths import write_text
from stagewise.reports.style import write_figure
from stagewise_studies.catalogue import load_study
from stagewise_studies.page import render_page
from stagewise_studies.source import ensure_parent
from stagewise_studies.study import Size


def run_study(name: str, out: Path, size: Size | None = None) -> dict[str, Any]:
    """Fetch, simulate, plot and write a study; return its result."""
    case, start = load_study(name), time.perf_counter()
    data = case.data(case.SOURCE.read())
    size = size or case.SIZE
    result: dict[str, Any] = {
        "study": name,
        "title": case.TITLE,
        "source": {**case.SOURCE._asdict(), "files": dict(case.SOURCE.files)},
        "size": size._asdict(),
        **case.play(data, case.policies(data), size),
    }
    result["claims"] = [claim._asdict() for claim in case.claims(result)]
    result["seconds"] = round(time.perf_counter() - start, 1)
    write_study(result, case.picture(result), out / name)
    return result


def write_study(result: Mapping[str, Any], figure: Any, folder: Path) -> None:
    """Write the result, its plot and its page."""
    write_text(ensure_parent(folder / "result.json"), json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    write_figure(figure, folder / "picture.png")
    write_text(folder / "index.html", render_page(result, figure))
