"""One small reproduction of everything, shared by the tests of a process."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stagewise_reproduction import drawing
from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.claim import Claim
from stagewise_reproduction.run import reproduce

RENDERED = ("figure-1-text",)


@pytest.fixture(scope="session")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Claim]]]:
    """Return the folder of a report at the smallest size, and its claims.

    Every figure is drawn in memory; few are rendered, which takes most of the time. The slow lane renders them all.
    """
    out, write = tmp_path_factory.mktemp("reproduction"), drawing.write_figure

    def write_few(figure: Any, path: Path) -> None:
        if path.stem in RENDERED:
            write(figure, path)
        else:
            path.write_bytes(empty_picture() if path.suffix == ".png" else b"<svg xmlns='http://www.w3.org/2000/svg'/>")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drawing, "write_figure", write_few)
        yield out, reproduce(list(CATALOGUE), ["text"], "smoke", out, 1)


def empty_picture() -> bytes:
    """Return a white PNG."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (400, 300), "white").save(file, "png")
    return file.getvalue()
