"""How far a simulation has come, for a person to watch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(wanted: bool, runs: int, rounds: int) -> Iterator[Callable[[int], None]]:
    """Yield what is told of every few runs more; show runs, rounds a second and the time left where it is wanted."""
    if not wanted:
        yield lambda runs: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("runs", total=runs, rate="compiling or loading")

        def advance(runs: int) -> None:
            progress.advance(task, runs)
            speed = progress.tasks[0].finished_speed or progress.tasks[0].speed or 0.0
            progress.update(task, rate=f"{speed * rounds:,.0f} rounds a second")

        yield advance
