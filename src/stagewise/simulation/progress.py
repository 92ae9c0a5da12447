"""The progress bar of simulations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(wanted: bool, runs: int, rounds: int, compiles: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts finished runs; show runs, rounds per second and the time left on a terminal.

    Until the first run is finished, the bar says that the loop is compiled, if `compiles`. A pipe gets no output.
    """
    if not wanted:
        yield lambda runs: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console()
    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=runs, status="compiling" if compiles else "starting")

        def advance(runs: int) -> None:
            if not runs:
                return
            progress.advance(task, runs)
            speed = progress.tasks[0].finished_speed or progress.tasks[0].speed or 0.0
            progress.update(task, status=f"{speed * rounds:,.0f} rounds per second")

        yield advance
