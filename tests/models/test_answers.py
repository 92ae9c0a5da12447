"""Every kind of model registers diagnostics, and only kernels and that registry read the kind of a block."""

import re
from pathlib import Path

import stagewise as sw
from stagewise.kernels import layout
from stagewise.models.diagnostics import REGISTERED, ModelDiagnostics

KINDS = ("RIDGE", "ARMS", "KERNEL_RIDGE", "PER_ACTION_RIDGE", "SEGMENT_RATES", "RARE_EVENTS")
PACKAGE = Path(sw.__file__).parent
ASKED = re.compile(r"\b(block|part|new|old|regression)\.kind\b")


def test_every_kind_of_model_answers() -> None:
    _ = sw.OPB, sw.OPLB, sw.KernelOPLB, sw.ContextCAPS, sw.CAPS
    answering = {name for name in KINDS if getattr(layout, name) in REGISTERED}
    assert answering == set(KINDS)
    assert all(type(REGISTERED[getattr(layout, name)]) is not ModelDiagnostics for name in KINDS)


def test_only_kernels_and_the_table_of_answers_ask_for_a_kind() -> None:
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "kernels" and ASKED.search(path.read_text("utf-8"))
    }
    assert asking == {"models/diagnostics.py"}
