"""Write the Python reference from the exports of `stagewise`: docs/reference/api.md and one page per group.

python docs/making/api_pages.py       # Sphinx calls it at the start of every build; the pages are not committed
"""

import inspect
import shutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import stagewise

REFERENCE = Path(__file__).parents[1] / "reference"
SECTIONS = {"Args:", "Attributes:", "Returns:", "Raises:", "Example:", "Examples:", "Note:"}


class Group(NamedTuple):
    """A page: which modules its names come from, and which members of their classes it shows."""

    title: str
    summary: str
    modules: tuple[str, ...]  # a module, or all modules of a package if it ends with a dot
    members: tuple[str, ...] | None = None  # None: every public one; fields of data classes are always shown


# A name is on the page of the first group that has its module.
GROUPS = {
    "agent": Group(
        "Agents",
        "Decide, learn, save, test assumptions; several processes that decide for one learner.",
        ("agent.",),
    ),
    "problem": Group(
        "Problems",
        "Declare actions, context, the reward and the limits by name.",
        ("policies.problem", "problem.signals", "problem.window"),
    ),
    "decisions": Group(
        "Decisions and outcomes",
        "What a policy returns, and what it learns from.",
        ("records.decision", "records.outcome", "records.random_key", "records.row_status"),
    ),
    "errors": Group(
        "Errors and reasons",
        "Codes of errors, and of decisions in which only the safe action could be played.",
        ("records.reason", "problem.errors"),
    ),
    "policies": Group(
        "Policies",
        "Algorithms, with their settings; each has the methods of `Policy`. "
        "[Which policy](../../explanation/policies.md) compares them.",
        ("policies.", "models.similarity", "problem.functions"),
        (),
    ),
    "actions": Group(
        "Actions, the safe action and thresholds",
        "What a policy that is used directly may choose from, and the constraints.",
        ("problem.",),
        ("only", "dimension"),
    ),
    "worlds": Group(
        "Worlds",
        "The truth of a simulation: means and outcomes.",
        ("worlds.",),
        ("actions_in", "means", "outcome", "costs", "action_means", "action_outcome"),
    ),
    "simulation": Group(
        "Simulation and certificates",
        "Many runs in compiled loops, and certificates of the guarantee.",
        ("simulation.", "reports."),
    ),
    "launch": Group(
        "From a log to a launch",
        "Check a log, forecast a launch, evaluate a policy without playing it.",
        ("launch.",),
    ),
    "client": Group(
        "Client of the server",
        "Decide and learn over HTTP. [The server](../../how-to/serve.md) explains how to start it.",
        ("server.",),
    ),
}

MEMBERS = {  # of one class, other than those of its group
    "Limit": (),
    "Policy": ("start", "decide", "learn"),
    "Problem": ("policy", "with_action", "windows", "choices", "load", "from_dict", "to_dict"),
    "Snapshot": ("to_dict", "from_dict", "from_bytes"),
}


def find_group(module: str) -> str:
    """Return the page of a module's names."""
    inside = module.removeprefix("stagewise.")
    for key, group in GROUPS.items():
        if any(inside == one or (one.endswith(".") and inside.startswith(one)) for one in group.modules):
            return key
    raise LookupError(f"no group of docs/making/api_pages.py has the module {module}")


def list_exports() -> dict[str, list[str]]:
    """Return the exported names of every group."""
    found: dict[str, list[str]] = {key: [] for key in GROUPS}
    for name in stagewise.__all__:
        found[find_group(getattr(stagewise, name).__module__)].append(name)
    return found


def list_settings(value: type) -> list[str]:
    """Return the fields that a dataclass is made with, or that a named tuple has."""
    if is_dataclass(value):
        return [field.name for field in fields(value) if field.init and not field.name.startswith("_")]
    return list(getattr(value, "_fields", ()))


def list_members(value: type, group: Group) -> list[str]:
    """Return the members of a class that its page shows, settings first."""
    settings = list_settings(value)
    shown = MEMBERS.get(value.__name__, group.members)
    found: dict[str, Any] = {}
    for base in value.__mro__:
        if base.__module__.startswith("stagewise"):
            for name, member in vars(base).items():
                found.setdefault(name, member)
    public = [name for name, member in found.items() if not name.startswith("_") and is_documented(value, name, member)]
    return settings + [name for name in public if name not in settings and (shown is None or name in shown)]


def is_documented(value: type, name: str, member: Any) -> bool:
    """Say whether a member is a method, a property or a constant of an enumeration, and has a docstring."""
    method = isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)
    own = inspect.getdoc(getattr(value, name)) if method or hasattr(type(member), "__get__") else None
    return name in getattr(value, "__members__", ()) or bool(own)


def find_classes(hint: Any) -> Iterator[type]:
    """Yield the classes of stagewise in a type."""
    if inspect.isclass(hint) and hint.__module__.startswith("stagewise"):
        yield hint
    for inner in get_args(hint):
        yield from find_classes(inner)


def read_hints(value: Any) -> dict[str, Any]:
    """Return the types of a function or class, if all of them can be imported."""
    try:
        return get_type_hints(value)
    except (NameError, TypeError):
        return {}


def find_returned(value: Any, group: Group) -> list[type]:
    """Return the classes that a function, or the methods of a class on its page, return and that are not exported."""
    functions = [value]
    if inspect.isclass(value):
        shown = [inspect.getattr_static(value, name, None) for name in list_members(value, group)]
        functions = [getattr(member, "fget", None) or getattr(member, "__func__", member) for member in shown]
    hints = [read_hints(one).get("return") for one in functions if inspect.isfunction(one)]
    return [found for hint in hints for found in find_classes(hint) if not is_exported(found)]


def is_exported(value: type) -> bool:
    """Say whether a class, or one that it is derived from, is exported."""
    return any(getattr(stagewise, base.__name__, None) is base for base in value.__mro__)


def summarise(value: Any) -> str:
    """Return the first sentence of a docstring."""
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".")


def write_entry(path: str, value: Any, group: Group) -> str:
    """Return the directive that shows a function or a class."""
    if not inspect.isclass(value):
        return f".. autofunction:: {path}"
    kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    lines = [f".. {kind}:: {path}"]
    if members := list_members(value, group):
        lines += [f"   :members: {', '.join(members)}", "   :undoc-members:"]
    return "\n".join(lines)


def write_page(key: str, names: list[str], placed: set[type]) -> str:
    """Return the page of a group; `placed`: classes that are not exported and are on some page already."""
    group = GROUPS[key]
    values = {f"stagewise.{name}": getattr(stagewise, name) for name in names}
    pending, returned = list(values.values()), {}
    while pending:
        for found in find_returned(pending.pop(), group):
            if found not in placed:
                placed.add(found)
                pending.append(found)
                returned[f"{found.__module__}.{found.__name__}"] = found
    parts = [f"# {group.title}", group.summary]
    parts += [show(path, value, group) for path, value in values.items()]
    if returned:
        parts += ["## Returned by the above", "These classes are not exported by `stagewise`: functions return them."]
        parts += [show(path, value, group, level=3) for path, value in sorted(returned.items())]
    return "\n\n".join(parts) + "\n"


def show(path: str, value: Any, group: Group, level: int = 2) -> str:
    entry = write_entry(path, value, group)
    return f"{'#' * level} {path.rpartition('.')[2]}\n\n```{{eval-rst}}\n{entry}\n```"


def write_index(exports: dict[str, list[str]]) -> str:
    """Return the page that lists every name."""
    parts = [
        "# Python",
        "Every name of `import stagewise as sw` with a one-line summary. Each links to its arguments and an example.",
    ]
    for key, names in exports.items():
        rows = [
            f"| [`{name}`](api/{key}.md#{name.lower()}) | {summarise(getattr(stagewise, name))} |" for name in names
        ]
        title = f"## [{GROUPS[key].title}](api/{key}.md)"
        parts.append("\n".join([f"{title}\n", "| name | what it is |", "|---|---|", *rows]))
    tree = "\n".join(f"api/{key}" for key in exports)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{tree}\n```")
    return "\n\n".join(parts) + "\n"


def write_all(folder: Path = REFERENCE) -> list[Path]:
    """Write every page, remove those of groups that are gone, and return the paths."""
    exports = {key: names for key, names in list_exports().items() if names}
    pages = {folder / "api.md": write_index(exports)}
    placed: set[type] = set()
    pages |= {folder / "api" / f"{key}.md": write_page(key, names, placed) for key, names in exports.items()}
    shutil.rmtree(folder / "api", ignore_errors=True)
    (folder / "api").mkdir(parents=True)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def keep_sentences(app: Any) -> None:
    """Have Napoleon leave docstrings of attributes alone: it takes what stands before a colon for a type."""
    originals: dict[str, list[str]] = {}

    def store(app: Any, what: str, name: str, *rest: Any) -> None:
        if what in ("attribute", "property"):
            originals[name] = [line for line in rest[-1] if not line.startswith("Alias for field number")]

    def restore(app: Any, what: str, name: str, *rest: Any) -> None:
        if what in ("attribute", "property") and not any(line.rstrip() in SECTIONS for line in originals[name]):
            rest[-1][:] = originals[name]

    app.connect("autodoc-process-docstring", store, priority=400)  # Napoleon's is 500
    app.connect("autodoc-process-docstring", restore, priority=600)


def show_settings(app: Any, what: str, name: str, value: Any, options: Any, signature: str, returned: str) -> Any:
    """Return the signature of a data class: names and defaults, whatever `__new__` accepts."""
    if what != "class" or not is_dataclass(value):
        return None
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in inspect.signature(value).parameters.values()]
    return str(inspect.Signature(bare)), returned


def drop_repeated_types(app: Any, domain: str, kind: str, content: Any) -> None:
    """Leave out the list of a data class's parameters: its fields are listed with their types and docstrings."""
    signature = content.parent[0]
    names = str(signature.get("fullname", "")).split(".")
    if kind == "class" and is_dataclass(getattr(stagewise, names[0], None)):
        app.env.current_document.autodoc_annotations.pop(f"{signature['module']}.{names[0]}", None)


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect("builder-inited", lambda app: write_all())
    app.connect("autodoc-process-signature", show_settings)
    app.connect("object-description-transform", drop_repeated_types, priority=400)  # autodoc adds types at 500
    keep_sentences(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for written in write_all():
        print(written)
