"""What a person can change on the page; each takes a reason."""

from collections.abc import Mapping
from typing import Any

from stagewise.service.web.call import Refused

CHANGES = ("kill", "revive", "mode", "acknowledge")
LONGEST = 2000


async def changed(desk: Any, what: str, name: str | None, form: Mapping[str, str], actor: str) -> None:
    """Have the desk change something; `name` None: for all experiments."""
    reason = " ".join(form.get("reason", "").split())
    if not reason or len(reason) > LONGEST:
        raise Refused(
            422, "A reason is needed, of at most 2,000 characters: it stands in the log. Nothing was changed."
        )
    if what == "kill":
        await desk.kill(name, actor, reason)
    elif what == "revive":
        await desk.revive(name, actor, reason)
    elif what == "mode":
        mode = form.get("mode", "")
        await desk.set_mode(name, mode, share_of(form.get("share", "")) if mode == "canary" else None, actor, reason)
    elif what == "acknowledge":
        await desk.acknowledge(name, form.get("name", ""), actor, reason)


def share_of(text: str) -> float:
    """Return a share that was typed in percent."""
    try:
        share = float(text) / 100.0
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise Refused(422, "The share of a canary is a percentage between 0 and 100. Nothing was changed.")
    return share
