"""docs/reference/http.md, metrics.md: every route, field and error stands there, and examples are answered so."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.server.server_helpers import learned, played
from tests.server.web.described import TOLD
from tests.server.web.real import real

from stagewise.problem.errors import ErrorCode
from stagewise.server.web import metrics
from stagewise.server.web.app import HttpSettings
from stagewise.server.web.openapi import ERROR_DESCRIPTIONS
from stagewise.server.web.requests import LogLine, RateLimit
from stagewise.server.web.routes import ROUTES

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
PAGE = "".join((REFERENCE / page).read_text(encoding="utf-8") for page in ("http.md", "metrics.md"))
PLAIN = re.sub("```.*?```", "", PAGE, flags=re.DOTALL)
CODE = {word for span in re.findall("`([^`]+)`", PLAIN) for word in re.findall(r"\w+", span)}
MOVING = ("snapshot", "control", "receipt", "row", "snapshot_age_s")  # what depends on how far the learner is


def test_every_route_stands_on_the_page_with_its_role() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \| (\w*) ?\|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((route.method, route.path, route.role or "none") for route in ROUTES)


def test_every_field_stands_on_the_page() -> None:
    fields = {name for schema in TOLD["components"]["schemas"].values() for name in schema.get("properties", {})} | set(
        LogLine.__struct_fields__
    )
    query = {name for route in ROUTES for name in route.query}
    examples = {
        word for block in re.findall("```json\n(.*?)```", PAGE, re.DOTALL) for word in re.findall(r"\w+", block)
    }
    sent = {word for block in re.findall("```text\n(.*?)```", PAGE, re.DOTALL) for word in re.findall(r"\w+", block)}
    missing = (fields | query) - CODE - examples - sent - {"alive", "ready", "why", "features"}
    assert missing == set()


def test_every_refusal_and_every_metric_stands_on_the_page() -> None:
    statuses = {int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)}
    assert statuses == {*ERROR_DESCRIPTIONS, 405, 500}
    assert {f"stagewise_{metric.name}" for metric in metrics.METRICS} <= CODE
    assert f"{RateLimit().per_second:.0f} calls a second" in PAGE


def test_every_code_of_the_table_exists_and_those_of_http_are_in_it() -> None:
    section = PAGE.partition("## Errors")[2].partition("## Request log")[0]
    codes = {
        code
        for row in re.findall(r"^\| \d{3} \| (.*?) \|", section, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", row)
    }
    assert codes <= set(ErrorCode)
    of_http = [code for code in ErrorCode if code in list(ErrorCode)[list(ErrorCode).index(ErrorCode.UNAUTHORIZED) :]]
    assert {*of_http} - {ErrorCode.NOT_READY} <= codes


@pytest.mark.wording
@played
async def test_its_examples_are_what_is_answered(tmp_path: Path) -> None:
    examples = re.findall(r"```text\n([A-Z]+) (\S+)\n(.*?)```\s*```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 7
    async with real(tmp_path, settings=HttpSettings(log=False)) as desk:
        for method, path, body, shown in examples:
            if path.startswith("/v1/fresh/"):
                await desk.desk.open("fresh", desk.played, "ada", "a test")  # it has made no decision
            sent = await desk.admin.send(method, path, body.encode())
            assert still(sent.plain) == still(json.loads(shown)), path
            await learned(desk.desk)


def still(told: Any) -> Any:
    """Return an answer without what moves by itself."""
    if isinstance(told, list):
        return [still(item) for item in told]
    if isinstance(told, dict):
        return {name: "" if name in MOVING else still(value) for name, value in told.items()}
    return told
