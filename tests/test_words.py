"""The words of the field: no name of the code, the documents, the server or its files is a word that we coined.

docs/reference/glossary.md has the words that are used. Words of `COINED` stand nowhere, not even in a comment. Words of
the other lists are English and may stand in sentences, but no function, class, method, attribute, parameter, key or
file is named so.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Not English, or English that this project used for something else: they stand nowhere.
COINED = (
    "apiece",
    "by_itself",
    "dearest",
    "desk",
    "diagnosis",
    "doubt",
    "doubts",
    "dry_after",
    "feared",
    "gone_with",
    "hoped",
    "hopeless",
    "limit_seen",
    "mistold",
    "named_caps",
    "named_today",
    "own_sets",
    "patience",
    "refuse_old",
    "refused_total",
    "revive",
    "revived",
    "roving",
    "sharpened",
    "silences",
    "told_by_name",
    "unit_outcomes",
    "untold",
)

# Names that contain one of these words are wrong.
ENGLISH_PARTS = ("told", "unsettled", "decisive", "outlook", "became")

# Names that are exactly one of these words are wrong.
ENGLISH_NAMES = (
    "adopt",
    "adopted",
    "alike",
    "apart",
    "asking",
    "behind",
    "changing",
    "disputed",
    "exchange",
    "fallback",
    "followed",
    "gap",
    "held",
    "home",
    "judge",
    "lane",
    "launched",
    "ledger",
    "looking",
    "overdue",
    "overrun",
    "part",
    "place",
    "plain",
    "rooms",
    "settled",
    "standing",
    "strays",
    "waiting",
    "whole",
    "withdraw",
    "would",
)

# Names that readers misread (docs/decisions/0031-how-names-are-judged.md): nothing is named exactly so.
MISREAD = (
    "Certificate",
    "Context",
    "RelativeToSafe",
    "TableWorld",
    "action_name",
    "cost_bound",
    "learn_frame",
    "relative_to_safe",
    "relearn",
    "reward_bound",
)

# Wrong for some kinds of names, or in some packages; elsewhere it is the right word. (word, where, what is named so)
LIMITED = (
    ("answers", "src/stagewise", ("class", "file")),
    ("ask", "src/stagewise", ("class",)),
    ("cells", "src/stagewise/models", ("file",)),
    ("events", "src/stagewise/models", ("file",)),
    ("expected", "src/stagewise/policies", ("attribute", "parameter", "key")),  # of outcomes
    ("expected", "src/stagewise/problem", ("attribute", "parameter", "key")),
    ("form", "src/stagewise", ("class",)),
    ("kept", "src/stagewise", ("class",)),
    ("learning", "src/stagewise", ("class",)),
    ("notes", "src/stagewise/policies", ("class", "file", "attribute", "parameter", "key")),  # `statistics`
    ("own", "src/stagewise/models", ("file",)),
    ("parts", "src/stagewise/policies", ("file",)),
    ("renamed", "src/stagewise", ("file",)),
    ("rest", "src/stagewise/cli", ("parameter", "key")),  # of a log: `holdout`
    ("rest", "src/stagewise/launch", ("parameter", "key")),
    ("service", "src/stagewise", ("file",)),
    ("shown", "src/stagewise", ("function", "class", "file")),  # a decision is shown or not; a value has a `safe_repr`
    ("signals", "src/stagewise/models", ("file",)),
    ("space", "src/stagewise/models", ("file",)),
    ("spread", "src/stagewise/policies", ("attribute", "parameter", "key")),  # of the posterior: `posterior_scale`
    ("spread", "docs/certificates", ("key",)),
    ("state", "src/stagewise/server", ("key",)),  # the number of a snapshot: `snapshot`
    ("taken", "src/stagewise/server", ("attribute", "key")),  # of outcomes: `accepted`
    ("trips", "src/stagewise", ("file",)),
    ("wish", "src/stagewise", ("class",)),
)

# Names that stay, each with its reason: (file or folder, kind, name).
ALLOWED: dict[tuple[str, str, str], str] = {
    ("docs/theory/drift.md", "attribute", "relearn"): "an option of benchmarks/drift_limits.py: the time until learned",
    ("src/stagewise/reports/evidence.py", "word", "hopeless"): "DIGEST_LABELS: digests of certificates hash it",
}

CODE = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "src").rglob("*.pyi"))
TEMPLATES = [path for kind in ("*.html", "*.css", "*.js") for path in sorted((ROOT / "src").rglob(kind))]
MADE = {"_build", "api", "gallery"}  # folders of pages that `make docs` writes
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(
        path
        for kind in ("*.md", "*.ipynb", "*.py")
        for path in sorted((ROOT / "docs").rglob(kind))
        if not MADE & set(path.parts) and path.name != "api.md"
    ),
]
DATA = sorted((ROOT / "docs").rglob("*.json"))


def split_name(name: str) -> list[str]:
    """Return the words of a name in lower case: of `snake_case`, of `CamelCase` and of `kebab-case`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [word.lower() for word in re.split(r"[_\W\d]+", parted) if word]


def contains(words: list[str], coined: str) -> bool:
    """Say whether the words of a coined name follow one another among these."""
    sought = coined.split("_")
    return any(words[start : start + len(sought)] == sought for start in range(len(words)))


@cache
def is_coined(name: str) -> bool:
    words = split_name(name)
    return any(contains(words, coined) for coined in COINED)


def is_wrong(name: str, kind: str, path: str) -> bool:
    """Say whether something of this kind, in this file, must not be named so."""
    if name.startswith("test_"):
        return is_coined(name)  # the name of a test is a sentence
    words = split_name(name)
    limited = {word for word, where, kinds in LIMITED if path.startswith(where) and kind in kinds}
    wrong = (
        is_coined(name)
        or name in MISREAD
        or not set(words).isdisjoint(ENGLISH_PARTS)
        or (len(words) == 1 and words[0] in limited.union(ENGLISH_NAMES))
    )
    return wrong and not is_allowed(name, kind, path)


def is_allowed(name: str, kind: str, path: str) -> bool:
    return any(path.startswith(where) and (kind, name) == (what, word) for where, what, word in ALLOWED)


def find_coined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of everything coined in a text: in names, and in sentences."""
    for number, line in enumerate(text.splitlines(), 1):
        for token in re.findall(r"[A-Za-z][\w-]*", line):
            if is_coined(token):
                yield number, token


def find_names(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the kind and the name of everything that a module names, and of the keys that it uses."""
    methods = {id(item) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for item in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, "method" if id(node) in methods else "function", node.name
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    yield argument.lineno, "parameter", argument.arg
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
            for field in node.body:
                for target in [*getattr(field, "targets", ()), getattr(field, "target", None)]:
                    if isinstance(target, ast.Name):
                        yield field.lineno, "attribute", target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, "attribute", node.attr
        elif isinstance(node, ast.Dict):
            yield from ((key.lineno, "key", key.value) for key in node.keys if is_text(key))
        elif isinstance(node, ast.Subscript) and is_text(node.slice):
            yield node.lineno, "key", node.slice.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "pop", "setdefault"):
            yield from ((key.lineno, "key", key.value) for key in node.args[:1] if is_text(key))


def is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def find_used(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield attributes and arguments that an example uses besides what it names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, "attribute", node.attr
        elif isinstance(node, ast.Call):
            yield from ((word.value.lineno, "parameter", word.arg) for word in node.keywords if word.arg)


def find_template_names(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the names within the expressions of a template."""
    for number, line in enumerate(text.splitlines(), 1):
        for expression in re.findall(r"\{[{%](.*?)[%}]\}", line):
            bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", expression)
            yield from ((number, "attribute", name) for name in re.findall(r"[A-Za-z_]\w*", bare))


def find_page_names(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the names that a page uses: in its Python code, and alone between backticks."""
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            yield from find_names_of_example(source, 0) if cell["cell_type"] == "code" else find_spans(source)
        return
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from find_names_of_example(block[1], text[: block.start(1)].count("\n"))
    yield from find_spans(re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M))


def find_names_of_example(code: str, before: int) -> Iterator[tuple[int, str, str]]:
    tree = ast.parse(code)
    yield from ((before + line, kind, name) for found in (find_names, find_used) for line, kind, name in found(tree))


def find_spans(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the names that stand alone between backticks: `agent.pending_summary()`, `--columns`, `"message"`."""
    for number, line in enumerate(text.splitlines(), 1):
        for span in re.findall(r"`([^`]+)`", line):
            for name in re.findall(r"^(?:[\w.]+\.)?\"?-{0,2}([A-Za-z_][\w-]*)\"?(?:\(.*\))?=?$", span):
                yield number, "attribute", name


def find_json_keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from find_json_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from find_json_keys(inner)


def check(path: Path) -> list[str]:
    """Return what is wrong in a file, each with its line."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        keys = sorted({key for key in find_json_keys(json.loads(text)) if is_wrong(key, "key", name)})
        return [f"{name}: key {key!r}" for key in keys]
    found = {(line, "word", word) for line, word in find_coined(text) if not is_allowed(word, "word", name)}
    named: Iterator[tuple[int, str, str]] = iter(())
    if path.suffix in (".py", ".pyi"):
        named = find_names(ast.parse(text))
    elif path.suffix == ".html":
        named = find_template_names(text)
    elif path.suffix in (".md", ".ipynb"):
        named = find_page_names(path, text)
    found |= {(line, kind, word) for line, kind, word in named if is_wrong(word, kind, name)}
    if is_wrong(path.stem, "file", name) or any(
        is_wrong(part, "file", name) for part in path.parts[len(ROOT.parts) : -1]
    ):
        found.add((0, "file", path.name))
    return [f"{name}:{line}: {kind} {word!r}" for line, kind, word in sorted(found)]


def report(paths: list[Path]) -> str:
    found = [line for path in paths for line in check(path)]
    return "\n".join([f"{len(found)} names or words that are not of the field (docs/reference/glossary.md):", *found])


def test_the_code_uses_the_words_of_the_field() -> None:
    assert len(CODE) > 100
    found = report([*CODE, *TEMPLATES])
    assert found.startswith("0 "), found


def test_the_documents_use_the_words_of_the_field() -> None:
    assert len(DOCUMENTS) > 50
    found = report(DOCUMENTS)
    assert found.startswith("0 "), found


def test_data_files_use_the_words_of_the_field() -> None:
    assert len(DATA) > 5
    found = report(DATA)
    assert found.startswith("0 "), found


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("def told(): ...", "told"),
        ("def f(place): ...", "place"),
        ("class ToldByName: ...", "ToldByName"),
        ("def learn_frame(self): ...", "learn_frame"),
        ("class A:\n    hoped: float", "hoped"),
        ("class A:\n    def plain(self): ...", "plain"),
        ("x.gap = 1", "gap"),
        ("answer = {'fallback': 1}", "fallback"),
        ("row['would']", "would"),
        ("row.get('behind')", "behind"),
    ],
)
def test_a_wrong_name_is_found(code: str, named: str) -> None:
    assert named in [name for _, kind, name in find_names(ast.parse(code)) if is_wrong(name, kind, "src/a.py")]


@pytest.mark.parametrize("text", ["the desk", "DeskClient", "--dry-after", "own_sets=True", "limit_seen", "a_doubt"])
def test_a_coined_word_is_found(text: str) -> None:
    assert list(find_coined(text))


@pytest.mark.parametrize("text", ["desktop", "it holds by itself", "undoubtedly", "an option that is dry after rain"])
def test_english_is_left_alone(text: str) -> None:
    assert not list(find_coined(text))


@pytest.mark.parametrize("code", ["known = 1", "state_seen = 1", "def f():\n    '''What was told.'''", "x['a'] = told"])
def test_local_variables_and_sentences_may_use_english(code: str) -> None:
    assert not [name for _, kind, name in find_names(ast.parse(code)) if is_wrong(name, kind, "src/a.py")]


@pytest.mark.parametrize("exception", ALLOWED)
def test_an_exception_is_needed(exception: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    where, kind, name = exception
    monkeypatch.delitem(ALLOWED, exception)
    found = check(ROOT / where)
    assert len(found) == 1, found
    assert found[0].endswith(f": {kind} {name!r}")
