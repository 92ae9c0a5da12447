"""docs/reference/http.md: every route, field and error stands on it, and its examples are answered so."""

import json
import re
from pathlib import Path
from typing import Any

from tests.service.desks import learned, played
from tests.service.web.described import TOLD
from tests.service.web.real import real

from stagewise.service.web import metrics
from stagewise.service.web.app import Settings
from stagewise.service.web.log import Line, Trouble
from stagewise.service.web.openapi import REFUSALS
from stagewise.service.web.rates import Rate
from stagewise.service.web.routes import ROUTES

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
PLAIN = re.sub("```.*?```", "", PAGE, flags=re.DOTALL)
CODE = {word for span in re.findall("`([^`]+)`", PLAIN) for word in re.findall(r"\w+", span)}
MOVING = ("state", "control", "snapshot_age_s")  # what depends on how far the learner is


def test_every_route_stands_on_the_page_with_its_role() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \| (\w*) ?\|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((route.method, route.path, route.role or "") for route in ROUTES)


def test_every_field_stands_on_the_page() -> None:
    fields = {name for schema in TOLD["components"]["schemas"].values() for name in schema.get("properties", {})} | set(
        Line.__struct_fields__ + Trouble.__struct_fields__
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
    assert statuses == {*REFUSALS, 405}
    assert {f"stagewise_{metric.name}" for metric in metrics.ALL} <= CODE
    assert f"{Rate().per_second:.0f} calls a second" in PAGE


@played
async def test_its_examples_are_what_is_answered(tmp_path: Path) -> None:
    examples = re.findall(r"```text\n([A-Z]+) (\S+)\n(.*?)```\s*```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 8
    async with real(tmp_path, settings=Settings(log=False, personalizer="demo")) as desk:
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
