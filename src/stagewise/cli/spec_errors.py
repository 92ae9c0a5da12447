"""Messages for invalid keys and values of a simulation's TOML file."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from stagewise.problem.formatting import join_names, safe_repr, suggest_name

SINGULARS = {"worlds": "world", "policies": "policy"}  # tables that a file has once, or several by name
HELP_HINT = "`stagewise help cli` lists the keys"


def format_validation_error(error: ValidationError, file: type[BaseModel]) -> str:
    """Return the message of the first error: key, value, expectation, and what was probably meant."""
    errors = error.errors()
    # an unknown key first: a mistyped key is also a missing one
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    path, value = [str(part) for part in first["loc"]], first["input"]
    key = ".".join(path)
    if first["type"] == "extra_forbidden":
        hint = suggest_key(path, file) or f"; {HELP_HINT}"
        return f"unknown key {key!r} with value {safe_repr(value)}{hint}"
    if first["type"] == "missing":
        return f"the key {key!r} is missing; {HELP_HINT}"
    if first["type"] == "dict_type" and path[0] in SINGULARS and len(path) == 2:
        return f"[{path[0]}] has {path[1]} = {safe_repr(value)}; write one [{SINGULARS[path[0]]}], or [{path[0]}.NAME]"
    message = f"{key} is {safe_repr(value)}; {first['msg'][0].lower()}{first['msg'][1:]}"
    if first["type"] == "int_type" and isinstance(value, float) and value.is_integer():
        return f"{message}: write {int(value):_}"
    return message + suggest_name(value, re.findall(r"'([^']*)'", str(first.get("ctx", {}).get("expected", ""))))


def suggest_key(path: Sequence[str], file: type[BaseModel]) -> str:
    """Return which key was meant or where this one belongs, or an empty string."""
    tables = {name: get_field_names(field.annotation) for name, field in file.model_fields.items()}
    *parents, key = path
    keys = list(tables) if not parents else tables.get(parents[0], [])
    if hint := suggest_name(key, keys):
        return hint
    if not parents and key in ("actions", "safe", "reward", "limits", "context", "delta"):
        return "; in a simulation, the problem is the table [problem], beside [simulation] and [world]"
    table = next((name for name, names in tables.items() if key in names and [name] != parents), None)
    if table is not None:
        return f"; it belongs into [{table}]"
    return f"; there are {join_names(keys)}" if keys else ""


def get_field_names(annotation: Any) -> list[str]:
    """Return the keys of a table of the file, if they are fixed."""
    return list(annotation.model_fields) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def format_unknown_key(key: str, value: Any, kind: str, keys: Sequence[str]) -> str:
    """Return the message for a setting that a kind does not have."""
    hint = suggest_name(key.rpartition(".")[2], keys)
    return f"unknown key {key!r} with value {safe_repr(value)}; {kind!r} has {', '.join(keys)}{hint}"
