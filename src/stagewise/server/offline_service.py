"""Offline logs: checked, written once, and learned before the first decision."""

import asyncio

from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import CONFLICT, NEW
from stagewise.server.offline_log import (
    OfflineLog,
    OfflineLogRequest,
    OfflineLogResponse,
    build_append_requests,
    check_rows,
    describe_log_conflict,
)
from stagewise.server.server_errors import Conflict
from stagewise.server.service_base import ServiceBase

POLL_INTERVAL = 0.01  # seconds between two checks whether the log is learned


class OfflineLogService(ServiceBase):
    """Learn offline logs."""

    async def learn_columns(self, name: str, request: OfflineLogRequest, actor: str) -> OfflineLogResponse:
        """Check the columns of a log against the problem and learn them."""
        experiment, read = self.experiment(name), self.read_log
        if read is None:
            raise InvalidOutcome(
                ErrorCode.UNSUPPORTED, "this server cannot check a log; start it with `stagewise serve`"
            )
        log = await asyncio.to_thread(
            read, experiment.problem, request.columns, request.names, request.accept, request.now
        )
        return await self.learn_log(name, log, actor, request.reason)

    async def learn_log(self, name: str, log: OfflineLog, actor: str, reason: str) -> OfflineLogResponse:
        """Append a checked log, once and before the first decision; the learner learns it soon."""
        experiment = self.experiment(name)
        await asyncio.to_thread(check_rows, experiment.problem, log)
        digest, requests = await asyncio.to_thread(build_append_requests, name, log, actor, reason)
        results = await self.writer.append_all(requests)
        first, last = results[0], results[-1]
        if first.status == CONFLICT or last.event is None:
            raise Conflict(
                ErrorCode.CONFLICT,
                "{problem}",
                problem=describe_log_conflict(
                    name, len(log.actions), None if first.event is None else first.event.body
                ),
            )
        self.learner.wake()
        notes = [str(note) for note in log.notes]  # msgspec encodes no subclass of str
        return OfflineLogResponse(len(log.actions), digest.hex(), last.event.seq, first.status == NEW, notes)

    async def learned(self, name: str, row: int) -> None:
        """Wait until the policy snapshot of this process includes a row."""
        while self.experiment(name).snapshot < row:
            failed = self.learner.failures.get(name) or self.learner.down
            if failed:
                raise StagewiseError(
                    ErrorCode.LEARNING_FAILED,
                    "the log of {name} is stored and could not be learned: {failed}",
                    name=safe_repr(name),
                    failed=failed,
                )
            await asyncio.sleep(POLL_INTERVAL)
