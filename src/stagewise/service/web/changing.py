"""POST what only an admin may: modes, the kill switch, problems, keys. The actor is the key's name."""

import asyncio

import msgspec

from stagewise.service.messages import Acknowledge, ChangeMode, GivenReason, NewProblem
from stagewise.service.offline import LearnLog
from stagewise.service.web.bodies import Everywhere, KnownKey, MadeKey, NewKey, Version
from stagewise.service.web.call import Answer, Call, answer

_mode, _reason = msgspec.json.Decoder(ChangeMode), msgspec.json.Decoder(GivenReason)
_acknowledge, _problem = msgspec.json.Decoder(Acknowledge), msgspec.json.Decoder(NewProblem)
_key, _log = msgspec.json.Decoder(NewKey), msgspec.json.Decoder(LearnLog)


async def mode(call: Call) -> Answer:
    """Change an experiment's mode."""
    asked, actor = _mode.decode(call.body), call.holder.name
    return answer(await call.desk.set_mode(call.words[0], asked.mode, asked.share, actor, asked.reason))


async def kill(call: Call) -> Answer:
    """Pull the kill switch of an experiment."""
    return answer(await call.desk.kill(call.words[0], call.holder.name, _reason.decode(call.body).reason))


async def revive(call: Call) -> Answer:
    """Let go of the kill switch of an experiment."""
    return answer(await call.desk.revive(call.words[0], call.holder.name, _reason.decode(call.body).reason))


async def kill_all(call: Call) -> Answer:
    """Pull the kill switch of all experiments."""
    changed = await call.desk.kill(None, call.holder.name, _reason.decode(call.body).reason)
    return answer(Everywhere(changed.killed, changed.control))


async def revive_all(call: Call) -> Answer:
    """Let go of the kill switch of all experiments."""
    changed = await call.desk.revive(None, call.holder.name, _reason.decode(call.body).reason)
    return answer(Everywhere(changed.killed, changed.control))


async def acknowledge(call: Call) -> Answer:
    """Take a person's word that a contradiction is known."""
    asked = _acknowledge.decode(call.body)
    return answer(await call.desk.acknowledge(call.words[0], asked.name, call.holder.name, asked.reason))


async def problem(call: Call) -> Answer:
    """Begin another version of the problem."""
    asked = _problem.decode(call.body)
    return answer(Version(await call.desk.new_version(call.words[0], asked.problem, call.holder.name, asked.reason)))


async def learn_log(call: Call) -> Answer:
    """Learn an offline log, before the first decision."""
    asked = await asyncio.to_thread(_log.decode, call.body)
    return answer(await call.desk.learn_columns(call.words[0], asked, call.holder.name))


async def list_keys(call: Call) -> Answer:
    """List the keys."""
    return answer([KnownKey(row.name, row.role, row.note, row.made, row.revoked) for row in call.keys.listed()])


async def add_key(call: Call) -> Answer:
    """Make a key."""
    asked = _key.decode(call.body)
    made = await asyncio.to_thread(call.keys.add, asked.name, asked.role, asked.note)
    return answer(MadeKey(asked.name, asked.role, made), 201)


async def revoke_key(call: Call) -> Answer:
    """Revoke a key."""
    await asyncio.to_thread(call.keys.revoke, call.words[0])
    return Answer(204, b"")
