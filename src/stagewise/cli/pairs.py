"""Pairs as people type them: NAME=VALUE, several with commas between, or the option again."""

from typing import Annotated

import typer

Names = Annotated[
    list[str] | None,
    typer.Option(help="Columns that are called otherwise: click=clicked,action=arm; or the option again."),
]


def pairs_of(given: list[str] | None, option: str) -> dict[str, str]:
    """Return values by name; what follows a comma without a name belongs to the value before it.

    >>> pairs_of(["click=clicked,action=arm", "at=day"], "--names")
    {'click': 'clicked', 'action': 'arm', 'at': 'day'}
    >>> pairs_of(["opt_out=0.01,0.02"], "--limits")
    {'opt_out': '0.01,0.02'}
    """
    from stagewise.problem.errors import InvalidFile
    from stagewise.problem.words import shown

    told: dict[str, str] = {}
    for text in given or []:
        name = ""
        for piece in text.split(","):
            before, sign, value = (part.strip() for part in piece.partition("="))
            if sign and before in told:
                raise InvalidFile(f"{option} names {shown(before)} twice; it takes each name once")
            if sign and before and value:
                name = before
                told[name] = value
            elif not sign and name and before:
                told[name] += f",{before}"
            else:
                raise InvalidFile(f"{option} is {shown(text)}; write it as name=value, and several with commas between")
    return told
