"""The line that says that kernels are compiled: once, and only on a terminal."""

import pytest

from stagewise.cli.console import COMPILE_NOTICE, announce_compilation

event = pytest.importorskip("numba.core.event")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_compilation_is_announced_once_and_only_on_a_terminal(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    with announce_compilation():
        assert capsys.readouterr().err == ""
        for _ in range(3):
            with event.trigger_event("numba:compile"):
                pass
    with event.trigger_event("numba:compile"):
        pass
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"{COMPILE_NOTICE}\n" if is_terminal else "")
