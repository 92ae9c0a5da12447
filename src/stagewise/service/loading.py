"""An offline log that a desk is given: checked, written once, and learned before the first decision."""

import asyncio

from stagewise.problem.errors import InvalidOutcome, StagewiseError
from stagewise.problem.words import shown
from stagewise.service.errors import Conflict
from stagewise.service.offline import LearnLog, Loaded, OfflineLog, asks_of, check_rows, why_not
from stagewise.service.reading import Reading
from stagewise.service.records import CONFLICT, NEW

AGAIN = 0.01  # seconds between two looks whether it is learned


class OfflineLogs(Reading):
    """Learn what another policy collected."""

    async def learn_columns(self, name: str, asked: LearnLog, actor: str) -> Loaded:
        """Check the columns of a log against the problem, and learn them."""
        ours, read = self.experiment(name), self.read_log
        if read is None:
            raise InvalidOutcome("this desk has no doctor to check a log with; `stagewise serve` starts one that has")
        log = await asyncio.to_thread(read, ours.problem, asked.columns, asked.names, asked.accept, asked.now)
        return await self.learn_log(name, log, actor, asked.reason)

    async def learn_log(self, name: str, log: OfflineLog, actor: str, reason: str) -> Loaded:
        """Have a log that was checked written, once, before the first decision; it is learned soon."""
        ours = self.experiment(name)
        await asyncio.to_thread(check_rows, ours.problem, log)
        digest, asks = await asyncio.to_thread(asks_of, name, log, actor, reason)
        settled = await self.writer.append_all(asks)
        first, last = settled[0], settled[-1]
        if first.verdict == CONFLICT or last.event is None:
            raise Conflict(why_not(name, len(log.actions), None if first.event is None else first.event.body))
        self.learner.wake()
        return Loaded(len(log.actions), digest.hex(), last.event.seq, first.verdict == NEW, list(log.notes))

    async def learned(self, name: str, row: int) -> None:
        """Wait until this process decides by what was learned up to a row."""
        while self.experiment(name).state < row:
            failed = self.learner.failures.get(name) or self.learner.down
            if failed:
                raise StagewiseError(f"the log of {shown(name)} is written and cannot be learned: {failed}")
            await asyncio.sleep(AGAIN)
