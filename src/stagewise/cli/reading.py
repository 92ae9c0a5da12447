"""`stagewise help`: the pages of the documentation, as they are installed with the package."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from stagewise.cli.saying import in_a_sentence

INSTALLED = Path(__file__).parents[1] / "docs"  # in a wheel: pyproject.toml says which pages
CHECKOUT = Path(__file__).parents[3] / "docs"  # in a clone of the repository
KINDS = ("tutorials", "how-to", "explanation", "reference", "theory")  # the folders of pages, in the order of the list
NO_PAGES = ("index", "api", "architecture")  # made for the documentation as a site, or for those who change stagewise


def read_on(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="A page, or a command; none: a list of the pages.")] = None,
) -> None:
    """Print a page of the documentation that came with this version.

    Example: stagewise help declare-a-problem
    """
    with in_a_sentence():
        commands = getattr(context.find_root().command, "commands", {})
        if topic is None:
            typer.echo(contents())
        elif topic in commands and topic not in pages():
            own = commands[topic]
            typer.echo(own.get_help(typer.Context(own, info_name=topic, parent=context.parent)), nl=False)
        else:
            show_page(page(topic))


def pages() -> dict[str, Path]:
    """Return the pages there are by their topics, tutorials first."""
    folder = INSTALLED if INSTALLED.is_dir() else CHECKOUT
    found = [path for kind in KINDS for path in sorted((folder / kind).glob("*.md")) if path.stem not in NO_PAGES]
    return {f"{path.parent.name}/{path.stem}": path for path in found}


def title(path: Path) -> str:
    """Return the heading of a page."""
    with path.open(encoding="utf-8") as file:
        return file.readline().strip("# \n")


def contents() -> str:
    """Return what there is to read."""
    found = pages()
    wide = max(map(len, found), default=0)
    rows = [f"  {name:{wide}}  {title(path)}" for name, path in found.items()]
    return "\n".join(["stagewise help TOPIC prints a page, stagewise COMMAND --help the options of a command.", *rows])


def page(topic: str) -> str:
    """Return the text of a page, or refuse what is none with the one that was meant."""
    from stagewise.files.paths import content_of
    from stagewise.problem.errors import InvalidProblem
    from stagewise.problem.words import nearest, shown

    name, found = topic.removeprefix("docs/").removesuffix(".md"), pages()
    name = next((known for known in found if known.endswith(f"/{name}")), name)  # the folder may be left out
    if name not in found:
        near = nearest(name, [*found, *(known.partition("/")[2] for known in found)]) or "; `stagewise help` lists them"
        raise InvalidProblem(f"there is no page {shown(topic)}{near}")
    return content_of(found[name]).decode()


def show_page(text: str) -> None:
    """Print a page: laid out on a terminal, as it is written elsewhere."""
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
