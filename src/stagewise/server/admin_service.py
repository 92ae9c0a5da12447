"""Changes by people: problem versions, modes and the kill switch, each logged with actor and reason."""

import asyncio
import re
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_name
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.server.controls import ACKNOWLEDGE, KILL, MODE, RESUME, parse_mode
from stagewise.server.event_log import CONFLICT, CONTROL, GLOBAL, PROBLEM, AppendRequest, encode_canonical
from stagewise.server.messages import OUTCOME_FIELDS, RESERVED_NAMES, ModeResponse
from stagewise.server.server_errors import Conflict
from stagewise.server.service_base import ServiceBase
from stagewise.server.versions import (
    ProblemVersion,
    build_next_version,
    build_version,
    describe_loosening,
    get_declared_problem,
    match_order,
)

MAX_ATTEMPTS = 8  # attempts of a start while other processes write versions

UNREACHABLE_NAME = re.compile(r"(^|/)\.\.?(/|$)|/data\.json$|/decisions/")
"""Names that browsers or proxies would resolve to another path, so that the experiment could not be stopped."""


class AdminService(ServiceBase):
    """Change modes, kill switches and problem versions."""

    async def open(
        self, name: str, problem: Problem, actor: str, reason: str, mode: str = "live", *, revert: bool = False
    ) -> None:
        """Serve a problem as a new experiment, as its current version or as a new version.

        A problem that equals an earlier version may be an intended revert or an outdated file. It becomes a new
        version if it allows nothing that the current version forbids, or if `revert` is true; otherwise it is
        rejected.
        """
        if name in self._experiments:
            await self._reopen(name, problem, actor, reason, revert)
            return
        check_names(check_name(name, "the experiment's name"), problem)
        checked_mode, share = parse_mode(mode, None)
        body = {"version": 1, "problem": problem.to_dict(), "actor": actor, "reason": reason}
        result = await self.writer.append(AppendRequest(name, PROBLEM, "1", encode_problem_row(body)))
        if (
            result.status == CONFLICT and result.event is not None
        ):  # another process was first, perhaps with another problem
            await asyncio.to_thread(self.refresh)
            return await self._reopen(name, problem, actor, reason, revert)
        await self._control(name, {"what": MODE, "mode": checked_mode, "share": share}, actor, reason)

    async def _reopen(self, name: str, problem: Problem, actor: str, reason: str, revert: bool) -> None:
        """Serve a problem as an existing experiment; write nothing if it equals the current version."""
        for left in reversed(range(MAX_ATTEMPTS)):
            current = self.experiment(name).current
            version = build_next_version(current, problem)
            if get_declared_problem(version) == get_declared_problem(current):
                return
            if not revert:
                await asyncio.to_thread(self._check_newer, name, current, version)
            try:
                await self.new_version(name, problem.to_dict(), actor, reason)
                return
            except Conflict:  # another process was first, perhaps with the same problem
                if not left:
                    raise
                await asyncio.to_thread(self.refresh)

    def _check_newer(self, name: str, current: ProblemVersion, new: ProblemVersion) -> None:
        """Reject a problem that equals an earlier version and is looser than the current one."""
        declared, version = get_declared_problem(new), None
        for event in self.store.iter_events_of_kind(name, PROBLEM):
            version = build_version(version, event)
            if version.number < current.number and get_declared_problem(version) == declared:
                loosening = describe_loosening(current, new)
                if loosening is not None:
                    raise InvalidProblem(
                        ErrorCode.CHANGE_NOT_ALLOWED,
                        "the problem of {name} is that of version {number}, and version {current} is in use; it "
                        "would allow {loosening}, so start with --revert to allow this, or give the problem of "
                        "version {current} or no file",
                        name=safe_repr(name),
                        number=version.number,
                        current=current.number,
                        loosening=loosening,
                    )
                return

    async def new_version(self, name: str, problem: dict[str, Any], actor: str, reason: str) -> int:
        """Create a new version of the problem and return its number. Raises InvalidProblem."""
        experiment = self.experiment(name)
        new_problem = match_order(experiment.problem, Problem.from_dict(problem))
        build_next_version(experiment.current, new_problem)
        number = experiment.version + 1
        body = {"version": number, "problem": new_problem.to_dict(), "actor": actor, "reason": reason}
        result = await self.writer.append(AppendRequest(name, PROBLEM, str(number), encode_problem_row(body)))
        if result.status == CONFLICT:
            raise Conflict(
                ErrorCode.CONFLICT,
                "version {number} of {name} was created by another client in the meantime; review that version first",
                number=number,
                name=safe_repr(name),
            )
        await asyncio.to_thread(self.refresh)
        return number

    async def set_mode(self, name: str, mode: str, share: float | None, actor: str, reason: str) -> ModeResponse:
        """Set the mode of an experiment."""
        self.experiment(name)
        checked_mode, checked_share = parse_mode(mode, share)
        return await self._control(name, {"what": MODE, "mode": checked_mode, "share": checked_share}, actor, reason)

    async def kill(self, name: str | None, actor: str, reason: str) -> ModeResponse:
        """Turn on the kill switch of an experiment, or of all experiments if name is None."""
        return await self._control(name, {"what": KILL}, actor, reason)

    async def resume(self, name: str | None, actor: str, reason: str) -> ModeResponse:
        """Turn off the kill switch."""
        return await self._control(name, {"what": RESUME}, actor, reason)

    async def acknowledge(self, name: str, alert: str, actor: str, reason: str) -> ModeResponse:
        """Acknowledge an alert, so that the experiment continues."""
        alerts = self.experiment(name).alerts
        if alert not in alerts:
            existing = f"the open alerts are {safe_repr(list(alerts))}" if alerts else "there is none"
            raise InvalidOutcome(
                ErrorCode.NO_OPEN_ALERT,
                "{alert} is not an open alert; {existing}",
                alert=safe_repr(alert),
                existing=existing,
            )
        return await self._control(name, {"what": ACKNOWLEDGE, "name": alert}, actor, reason)

    async def _control(self, name: str | None, control: dict[str, Any], actor: str, reason: str) -> ModeResponse:
        """Append a control row and apply it."""
        if name is not None and control["what"] != MODE:
            self.experiment(name)
        body = encode_canonical({**control, "actor": actor, "reason": reason})
        result = await self.writer.append(AppendRequest(GLOBAL if name is None else name, CONTROL, "", body))
        await asyncio.to_thread(self.refresh)
        now = self.everywhere if name is None else self.experiment(name).controls
        row = 0 if result.event is None else result.event.seq
        return ModeResponse(now.mode, now.share, (now.killed or self.everywhere.killed) is not None, row)


def check_names(name: str, problem: Problem) -> None:
    """Reject names that conflict with the HTTP API."""
    if name in RESERVED_NAMES or UNREACHABLE_NAME.search(name):
        raise InvalidProblem(
            ErrorCode.INVALID_NAME,
            "the experiment is called {name!r}, which is part of the server's own URLs; rename it",
            name=name,
        )
    reserved = next((signal for signal in problem.signals if signal in OUTCOME_FIELDS), None)
    if reserved is not None:
        raise InvalidProblem(
            ErrorCode.INVALID_NAME,
            "a signal is called {reserved!r}, which is a field of every outcome; rename it",
            reserved=reserved,
        )


def encode_problem_row(body: Any) -> bytes:
    """Encode the row of a problem; names keep their order."""
    return msgspec.json.encode(body)
