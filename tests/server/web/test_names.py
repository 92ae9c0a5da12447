"""Names: what means something else by HTTP is refused; whatever else is in a name is text, and nothing more."""

import re
from pathlib import Path

import pytest
from tests.server.server_helpers import played
from tests.server.web.client import Client
from tests.server.web.real import problem, real

import stagewise as sw
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.server.messages import OUTCOME_FIELDS, RESERVED_NAMES
from stagewise.server.web.routes import ROUTES

WILD = '<img src=x onerror="alert(1)">\\ "quoted" é/ü'


@played
async def test_names_that_mean_something_else_are_refused(tmp_path: Path) -> None:
    assert set(RESERVED_NAMES) == {route.path.split("/")[2] for route in ROUTES if re.match("/v1/[a-z]", route.path)}
    async with real(tmp_path) as desk:
        for name in (*RESERVED_NAMES, "..", ".", "../x", "a/./b", "a/..", "x/data.json", "a/decisions/b"):
            with pytest.raises(InvalidProblem) as error:
                await desk.desk.open(name, problem(), "ada", "a test")
            assert (error.value.code, error.value.details["name"]) == (ErrorCode.INVALID_NAME, name)
        for name in OUTCOME_FIELDS:
            content = {**problem().to_dict(), "reward": {"name": name}}
            with pytest.raises(InvalidProblem) as error:
                await desk.desk.open("new", sw.Problem.from_dict(content), "ada", "a test")
            assert (error.value.code, name in error.value.details.values()) == (ErrorCode.INVALID_NAME, True)
        assert desk.desk.experiments() == ["demo"]
        for name in ("...", "..a", "data.json", "decisions", "a/b"):
            await desk.desk.open(name, problem(), "ada", "a test")


@played
async def test_a_name_with_markup_quotes_and_slashes_is_a_name(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        await desk.desk.open(WILD, problem(), "ada", WILD)
        path = "/v1/" + "".join(
            c if c.isalnum() and c.isascii() else "".join(f"%{b:02X}" for b in c.encode()) for c in WILD
        )
        made = await desk.writer.post(f"{path}/decisions", {"context": {"age": 34}, "decision_id": WILD})
        assert (made.status, made.plain["decision_id"]) == (200, WILD)
        assert (await desk.writer.post(f"{path}/outcomes", {"decision_id": WILD, "click": 1})).status == 200
        assert [one["name"] for one in (await desk.reader.get("/v1/experiments")).plain] == [WILD, "demo"]
        sent = await desk.reader.get(f"{path}/decisions/nobody<script>")
        assert (sent.status, sent.headers["content-type"]) == (404, "application/json")
        assert sent.headers["x-content-type-options"] == "nosniff"
        await check_metrics(desk.reader)


async def check_metrics(reader: Client) -> None:
    """Hold the page for Prometheus to its format: every line a comment or a sample, labels quoted."""
    text = (await reader.get("/metrics")).content.decode()
    label = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
    sample = re.compile(rf"stagewise_[a-z_]+(?:\{{{label}(?:,{label})*\}})? -?[0-9][0-9.e+-]*")
    lines = text.splitlines()
    assert [line for line in lines if not line.startswith("# ") and not sample.fullmatch(line)] == []
    wild = WILD.replace("\\", "\\\\").replace('"', '\\"')
    assert f'stagewise_outcomes_total{{experiment="{wild}",result="accepted"}} 1' in lines
    assert any(line.startswith(f'stagewise_decisions_total{{experiment="{wild}",action="nothing"') for line in lines)
    assert 'stagewise_http_errors_total{route="/v1/{experiment}/decisions/{decision_id}",status="404"} 1' in lines
    assert f'stagewise_limit_margin{{experiment="{wild}",limit="opt_out"}} 0.02' in lines
    assert "stagewise_ready 1.0" in lines
