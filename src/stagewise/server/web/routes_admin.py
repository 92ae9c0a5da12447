"""Admin routes: modes, the kill switch, problems, keys. The actor in the log is the key's name."""

import asyncio

import msgspec

from stagewise.server.messages import AcknowledgeRequest, ModeRequest, ProblemRequest, ReasonRequest
from stagewise.server.offline_log import OfflineLogRequest
from stagewise.server.web.http_types import RouteRequest, RouteResponse, json_response
from stagewise.server.web.schemas import CreatedKey, GlobalKillResponse, KeyInfo, KeyRequest, VersionResponse

_mode_decoder, _reason_decoder = msgspec.json.Decoder(ModeRequest), msgspec.json.Decoder(ReasonRequest)
_acknowledge_decoder, _problem_decoder = msgspec.json.Decoder(AcknowledgeRequest), msgspec.json.Decoder(ProblemRequest)
_key_decoder, _log_decoder = msgspec.json.Decoder(KeyRequest), msgspec.json.Decoder(OfflineLogRequest)


async def set_mode(call: RouteRequest) -> RouteResponse:
    """Set the mode of an experiment."""
    body, actor = _mode_decoder.decode(call.body), call.holder.name
    return json_response(await call.server.set_mode(call.path_params[0], body.mode, body.share, actor, body.reason))


async def kill_experiment(call: RouteRequest) -> RouteResponse:
    """Turn on the kill switch of an experiment."""
    return json_response(
        await call.server.kill(call.path_params[0], call.holder.name, _reason_decoder.decode(call.body).reason)
    )


async def resume_experiment(call: RouteRequest) -> RouteResponse:
    """Turn off the kill switch of an experiment."""
    return json_response(
        await call.server.resume(call.path_params[0], call.holder.name, _reason_decoder.decode(call.body).reason)
    )


async def kill_all(call: RouteRequest) -> RouteResponse:
    """Turn on the kill switch of all experiments."""
    response = await call.server.kill(None, call.holder.name, _reason_decoder.decode(call.body).reason)
    return json_response(GlobalKillResponse(response.killed, response.control))


async def resume_all(call: RouteRequest) -> RouteResponse:
    """Turn off the kill switch of all experiments."""
    response = await call.server.resume(None, call.holder.name, _reason_decoder.decode(call.body).reason)
    return json_response(GlobalKillResponse(response.killed, response.control))


async def acknowledge_alert(call: RouteRequest) -> RouteResponse:
    """Acknowledge an alert."""
    body = _acknowledge_decoder.decode(call.body)
    return json_response(await call.server.acknowledge(call.path_params[0], body.name, call.holder.name, body.reason))


async def create_version(call: RouteRequest) -> RouteResponse:
    """Create a new version of the problem."""
    body = _problem_decoder.decode(call.body)
    version = await call.server.new_version(call.path_params[0], body.problem, call.holder.name, body.reason)
    return json_response(VersionResponse(version))


async def learn_log(call: RouteRequest) -> RouteResponse:
    """Learn an offline log, before the first decision."""
    body = await asyncio.to_thread(_log_decoder.decode, call.body)
    return json_response(await call.server.learn_columns(call.path_params[0], body, call.holder.name))


async def list_keys(call: RouteRequest) -> RouteResponse:
    """List the keys."""
    return json_response(
        [KeyInfo(row.name, row.role, row.note, row.made, row.revoked) for row in call.keys.list_keys()]
    )


async def add_key(call: RouteRequest) -> RouteResponse:
    """Create a key."""
    body = _key_decoder.decode(call.body)
    key = await asyncio.to_thread(call.keys.add, body.name, body.role, body.note)
    return json_response(CreatedKey(body.name, body.role, key), 201)


async def revoke_key(call: RouteRequest) -> RouteResponse:
    """Revoke a key."""
    await asyncio.to_thread(call.keys.revoke, call.path_params[0])
    return RouteResponse(204, b"")
