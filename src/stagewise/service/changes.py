"""What people change of a desk: versions of problems, modes, the kill switch; each a row with who and why."""

import asyncio
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
from stagewise.service.versions import Version, begun, following, in_order_of, loosened, said

TRIES = 8  # of a start while others write versions

UNREACHED = re.compile(r"(^|/)\.\.?(/|$)|/data\.json$|/decisions/")
"""In a name: browsers and balancers take it for another address, so that nobody could stop what is called so."""


class Changes(Reading):
    """Change who may decide, and what."""

    async def open(
        self, name: str, problem: Problem, actor: str, reason: str, mode: str = "live", *, revert: bool = False
    ) -> None:
        """Serve a problem: as a new experiment, as the version that is played, or as a new version.

        A problem that was played before and is not any more may be one that somebody went back to, or a file that
        was left behind. It is a new version if it allows nothing that is not allowed now, or if `revert` says that it
        is meant; otherwise it is refused.
        """
        if name in self._experiments:
            await self._reopen(name, problem, actor, reason, revert)
            return
        check_names(title(name, "the experiment's name"), problem)
        told, share = mode_of(mode, None)
        body = {"version": 1, "problem": problem.plain(), "actor": actor, "reason": reason}
        settled = await self.writer.append(Ask(name, PROBLEM, "1", in_order(body)))
        if settled.verdict == CONFLICT and settled.event is not None:  # another process was first, maybe with another
            await asyncio.to_thread(self.refresh)
            return await self._reopen(name, problem, actor, reason, revert)
        await self._control(name, {"what": MODE, "mode": told, "share": share}, actor, reason)

    async def _reopen(self, name: str, problem: Problem, actor: str, reason: str, revert: bool) -> None:
        """Serve a problem as an experiment that is there; nothing is written where it is what is played."""
        for left in reversed(range(TRIES)):
            ours = self.experiment(name).current
            wanted = following(ours, problem)
            if said(wanted) == said(ours):
                return
            if not revert:
                await asyncio.to_thread(self._check_newer, name, ours, wanted)
            try:
                await self.new_version(name, problem.plain(), actor, reason)
                return
            except Conflict:  # another process was first, maybe with the same
                if not left:
                    raise
                await asyncio.to_thread(self.refresh)

    def _check_newer(self, name: str, ours: Version, wanted: Version) -> None:
        """Refuse a problem that was played before the version that is played, where it would loosen that."""
        played, version = said(wanted), None
        for event in self.store.all_of_kind(name, PROBLEM):
            version = begun(version, event)
            if version.number < ours.number and said(version) == played:
                looser = loosened(ours, wanted)
                if looser is not None:
                    raise InvalidProblem(
                        f"{shown(name)} is given as version {version.number} had it, and version {ours.number} is "
                        f"played since: it would allow {looser}. If that is meant, start with --revert; to go on with "
                        f"version {ours.number}, give its problem or no file"
                    )
                return

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
