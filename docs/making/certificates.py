"""Sphinx extension: copy the certificates into the site. `make certificate-pages` builds their pages first."""

import shutil
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

FOLDER = Path(__file__).parents[1] / "certificates"


def copy_certificates(app: Any, error: Exception | None) -> None:
    """Copy the certificates and their pages beside the site's own pages."""
    if error is not None or app.builder.format != "html":
        return
    if not (FOLDER / "index.html").exists():
        raise ExtensionError("docs/certificates has no pages yet; build them with `make certificate-pages`")
    target = Path(app.outdir) / FOLDER.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(FOLDER, target)


def setup(app: Any) -> dict[str, bool]:
    """Register the copy after all pages are written."""
    app.connect("build-finished", copy_certificates)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
