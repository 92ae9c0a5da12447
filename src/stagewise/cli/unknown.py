"""What is said of a key that no file has, of one that stands in the wrong place, and of a value that is no choice."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from stagewise.problem.naming import listing
from stagewise.problem.words import nearest, shown

SEVERAL = {"worlds": "world", "policies": "policy"}  # what is given once, or several times by name
READ_ON = "`stagewise help cli` lists the keys"


def complaint(error: ValidationError, file: type[BaseModel]) -> str:
    """Return the first thing wrong with a file of this shape: key, value, expectation, and what was probably meant."""
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])  # a typo makes a key go missing
    place, value = [str(part) for part in first["loc"]], first["input"]
    key = ".".join(place)
    if first["type"] == "extra_forbidden":
        near = meant(place, file) or f"; {READ_ON}"
        return f"unknown key {key!r} with value {shown(value)}{near}"
    if first["type"] == "missing":
        return f"the key {key!r} is missing; {READ_ON}"
    if first["type"] == "dict_type" and place[0] in SEVERAL and len(place) == 2:
        return f"[{place[0]}] has {place[1]} = {shown(value)}; write one [{SEVERAL[place[0]]}], or [{place[0]}.NAME]"
    said = f"{key} is {shown(value)}; {first['msg'][0].lower()}{first['msg'][1:]}"
    if first["type"] == "int_type" and isinstance(value, float) and value.is_integer():
        return f"{said}: write {int(value):_}"
    return said + nearest(value, re.findall(r"'([^']*)'", str(first.get("ctx", {}).get("expected", ""))))


def meant(place: Sequence[str], file: type[BaseModel]) -> str:
    """Return which key was meant, or where this one belongs; nothing where nobody can tell."""
    tables = {name: fields_of(field.annotation) for name, field in file.model_fields.items()}
    *above, key = place
    known = list(tables) if not above else tables.get(above[0], [])
    if near := nearest(key, known):
        return near
    if not above and key in ("actions", "safe", "reward", "limits", "context", "delta"):
        return "; what a problem declares stands in [problem] here, beside [simulation] and [world]"
    home = next((name for name, keys in tables.items() if key in keys and [name] != above), None)
    if home is not None:
        return f"; it belongs into [{home}]"
    return f"; there are {listing(known)}" if known else ""


def fields_of(annotation: Any) -> list[str]:
    """Return the keys of a table of the file, where it has a shape of its own."""
    return list(annotation.model_fields) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def refused(key: str, value: Any, kind: str, known: Sequence[str]) -> str:
    """Return what is said of a setting that a kind does not have."""
    near = nearest(key.rpartition(".")[2], known)
    return f"unknown key {key!r} with value {shown(value)}; {kind!r} has {', '.join(known)}{near}"
