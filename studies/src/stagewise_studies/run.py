"""One study from its source to its folder: result.json, picture.png and index.html."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagewise.files.whole import write_text
from stagewise.reports.style import write_picture
from stagewise_studies.catalogue import study
from stagewise_studies.page import page
from stagewise_studies.source import made
from stagewise_studies.study import Size


def run(name: str, out: Path, size: Size | None = None) -> dict[str, Any]:
    """Fetch, play, draw and write a study; return what came out."""
    case, began = study(name), time.perf_counter()
    data = case.data(case.SOURCE.read())
    size = size or case.SIZE
    told: dict[str, Any] = {
        "study": name,
        "title": case.TITLE,
        "source": {**case.SOURCE._asdict(), "files": dict(case.SOURCE.files)},
        "size": size._asdict(),
        **case.play(data, case.policies(data), size),
    }
    told["claims"] = [claim._asdict() for claim in case.claims(told)]
    told["seconds"] = round(time.perf_counter() - began, 1)
    write(told, case.picture(told), out / name)
    return told


def write(told: Mapping[str, Any], figure: Any, folder: Path) -> None:
    """Write what came out, and what shows it."""
    write_text(made(folder / "result.json"), json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    write_picture(figure, folder / "picture.png")
    write_text(folder / "index.html", page(told, figure))
