"""What people change of a desk: versions of problems, modes, the kill switch; each a row with who and why."""

import asyncio
import logging
import re
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.checks import shown
from stagewise.problem.declared import title
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.service.controls import ACKNOWLEDGE, KILL, MODE, REVIVE, mode_of
from stagewise.service.errors import Conflict
from stagewise.service.messages import OUTCOME_WORDS, RESERVED, Changed
from stagewise.service.reading import Reading
from stagewise.service.records import CONFLICT, CONTROL, EVERYWHERE, PROBLEM, Ask, canonical
from stagewise.service.versions import following, in_order_of

log = logging.getLogger("stagewise.desk")

UNREACHED = re.compile(r"(^|/)\.\.?(/|$)|/data\.json$|/decisions/")
"""In a name: browsers and balancers take it for another address, so that nobody could stop what is called so."""


class Changes(Reading):
    """Change who may decide, and what."""

    async def open(self, name: str, problem: Problem, actor: str, reason: str, mode: str = "live") -> None:
        """Serve a problem: as a new experiment, or the same as before; a changed one is a new version."""
        if name in self._experiments:
            wanted, said = canonical(problem.plain()), self._asked_for(name)
            if wanted not in said:
                await self.new_version(name, problem.plain(), actor, reason)
            elif wanted != said[-1]:  # a file that was not changed since does not undo what was changed elsewhere
                log.warning("%r is played by version %d, which is newer than what was given", name, len(said))
            return
        check_names(title(name, "the experiment's name"), problem)
        told, share = mode_of(mode, None)
        body = {"version": 1, "problem": problem.plain(), "actor": actor, "reason": reason}
        settled = await self.writer.append(Ask(name, PROBLEM, "1", in_order(body)))
        if settled.verdict == CONFLICT and settled.event is not None:  # another process was first, maybe with another
            await asyncio.to_thread(self.refresh)
            return await self.open(name, problem, actor, reason, mode)
        await self._control(name, {"what": MODE, "mode": told, "share": share}, actor, reason)

    def _asked_for(self, name: str) -> list[bytes]:
        """Return the problem as it was said, version by version."""
        rows = self.store.of_kind(name, PROBLEM)
        return [canonical(msgspec.json.decode(row.body)["problem"]) for row in rows]

    async def new_version(self, name: str, problem: dict[str, Any], actor: str, reason: str) -> int:
        """Play a changed problem from now on, or say why that would void the guarantee."""
        ours = self.experiment(name)
        wanted = in_order_of(ours.problem, Problem.from_plain(problem))
        following(ours.current, wanted)
        number = ours.version + 1
        body = {"version": number, "problem": wanted.plain(), "actor": actor, "reason": reason}
        settled = await self.writer.append(Ask(name, PROBLEM, str(number), in_order(body)))
        if settled.verdict == CONFLICT:
            raise Conflict(f"version {number} of {shown(name)} was made by somebody else meanwhile; look at it first")
        await asyncio.to_thread(self.refresh)
        return number

    async def set_mode(self, name: str, mode: str, share: float | None, actor: str, reason: str) -> Changed:
        """Change the mode of an experiment."""
        self.experiment(name)
        told, part = mode_of(mode, share)
        return await self._control(name, {"what": MODE, "mode": told, "share": part}, actor, reason)

    async def kill(self, name: str | None, actor: str, reason: str) -> Changed:
        """Serve the safe action alone from now on, in every process; of no name: in every experiment."""
        return await self._control(name, {"what": KILL}, actor, reason)

    async def revive(self, name: str | None, actor: str, reason: str) -> Changed:
        """Let go of the kill switch."""
        return await self._control(name, {"what": REVIVE}, actor, reason)

    async def acknowledge(self, name: str, doubt: str, actor: str, reason: str) -> Changed:
        """Go on although something contradicts safety, on a person's word."""
        doubts = self.experiment(name).doubts
        if doubt not in doubts:
            known = f"in doubt are {shown(list(doubts))}" if doubts else "nothing is"
            raise InvalidOutcome(f"{shown(doubt)} is not in doubt; {known}")
        return await self._control(name, {"what": ACKNOWLEDGE, "name": doubt}, actor, reason)

    async def _control(self, name: str | None, told: dict[str, Any], actor: str, reason: str) -> Changed:
        """Write a control, and obey it."""
        if name is not None and told["what"] != MODE:
            self.experiment(name)
        body = canonical({**told, "actor": actor, "reason": reason})
        settled = await self.writer.append(Ask(EVERYWHERE if name is None else name, CONTROL, "", body))
        await asyncio.to_thread(self.refresh)
        now = self.everywhere if name is None else self.experiment(name).controls
        row = 0 if settled.event is None else settled.event.seq
        return Changed(now.mode, now.share, (now.killed or self.everywhere.killed) is not None, row)


def check_names(name: str, problem: Problem) -> None:
    """Refuse names that mean something else by HTTP."""
    if name in RESERVED or UNREACHED.search(name):
        raise InvalidProblem(f"the experiment is called {name!r}, as a part of the desk's own addresses is; rename it")
    taken = next((signal for signal in problem.signals if signal in OUTCOME_WORDS), None)
    if taken is not None:
        raise InvalidProblem(f"a signal is called {taken!r}, as a field of every outcome that is sent is; rename it")


def in_order(body: Any) -> bytes:
    """Return a problem's row: names stay in the order in which they were said."""
    return msgspec.json.encode(body)
