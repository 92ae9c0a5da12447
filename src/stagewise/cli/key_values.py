"""Options of the form NAME=VALUE."""

from typing import Annotated

import typer

from stagewise.problem.errors import ErrorCode

ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(help="Column that holds a name of the problem, such as click=clicked; repeatable."),
]


def parse_pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Return values by name; text after a comma without a name belongs to the value before it.

    >>> parse_pairs(["click=clicked,action=arm", "at=day"], "--columns")
    {'click': 'clicked', 'action': 'arm', 'at': 'day'}
    >>> parse_pairs(["opt_out=0.01,0.02"], "--limits")
    {'opt_out': '0.01,0.02'}
    """
    from stagewise.problem.errors import InvalidFile
    from stagewise.problem.formatting import safe_repr

    pairs: dict[str, str] = {}
    for text in given or []:
        name = ""
        for piece in text.split(","):
            key, sign, value = (part.strip() for part in piece.partition("="))
            if sign and key in pairs:
                raise InvalidFile(
                    ErrorCode.DUPLICATE_NAME,
                    "{option} gives {name} twice; give each name once",
                    option=option,
                    name=safe_repr(key),
                )
            if sign and key and value:
                name = key
                pairs[name] = value
            elif not sign and name and key:
                pairs[name] += f",{key}"
            else:
                raise InvalidFile(
                    ErrorCode.INVALID_OPTION,
                    "{option} is {text}; it must be name=value, with commas between several pairs",
                    option=option,
                    text=safe_repr(text),
                )
    return pairs
