"""Changes that the page's forms make; each needs a reason."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.errors import HTTPError

FORM_ACTIONS = ("kill", "resume", "mode", "acknowledge")
MAX_REASON_LENGTH = 2000


async def apply_form(server: Any, action: str, name: str | None, form: Mapping[str, str], actor: str) -> None:
    """Apply a form to an experiment, or to all of them if `name` is None."""
    reason = " ".join(form.get("reason", "").split())
    if not reason or len(reason) > MAX_REASON_LENGTH:
        message = "Give a reason of at most 2,000 characters for the log. Nothing was changed."
        raise HTTPError(422, ErrorCode.INVALID_REQUEST, message)
    if action == "kill":
        await server.kill(name, actor, reason)
    elif action == "resume":
        await server.resume(name, actor, reason)
    elif action == "mode":
        mode = form.get("mode", "")
        share = parse_share(form.get("share", "")) if mode == "canary" else None
        await server.set_mode(name, mode, share, actor, reason)
    elif action == "acknowledge":
        await server.acknowledge(name, form.get("name", ""), actor, reason)


def parse_share(text: str) -> float:
    """Return a share that is given in percent."""
    try:
        share = float(text) / 100.0
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        message = "The share of a canary is a percentage between 0 and 100. Nothing was changed."
        raise HTTPError(422, ErrorCode.OUT_OF_RANGE, message)
    return share
