"""The certificates stand in the site as they stand in the repository: pages of their own, which need nothing else."""

import shutil
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "certificates"


def copied(app: Any, error: Exception | None) -> None:
    """Copy them beside the pages, anew."""
    if error is None and app.builder.format == "html":
        place = Path(app.outdir) / FOLDER.name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(FOLDER, place)


def setup(app: Any) -> dict[str, bool]:
    """Copy when all pages are written."""
    app.connect("build-finished", copied)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
