"""The description is valid OpenAPI, has every route, and the service does what it says."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from tests.server.server_helpers import played
from tests.server.web.described import TOLD
from tests.server.web.live import Live, live
from tests.server.web.real import opened, real

from stagewise.server.web.routes import ROUTES
from stagewise.server.web.schemas import FiguresResponse

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.unsupported_method,
]
BATCHES = ("/v1/{experiment}/decisions", "/v1/{experiment}/outcomes")  # a wrong item of a list is refused by itself


@played
async def test_it_has_every_route_with_every_refusal() -> None:
    async with opened() as place:
        told = (await place.reader.get("/openapi.json")).plain
    assert told == TOLD
    assert told["openapi"] == "3.1.0"
    assert {(method.upper(), path) for path, of in told["paths"].items() for method in of} == {
        (route.method, route.path) for route in ROUTES
    }
    for route in ROUTES:
        answers = set(told["paths"][route.path][route.method.lower()]["responses"])
        assert (("401" in answers), ("415" in answers)) == (route.role is not None, route.request is not None)
    assert [name for name, schema in told["components"]["schemas"].items() if not schema["description"]] == []


@played
async def test_the_figures_have_the_fields_that_are_described_and_no_others(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        await desk.writer.post("/v1/demo/decisions", {"context": {"age": 34}})
        answered = (await desk.reader.get("/v1/demo/figures")).plain
    described = set(FiguresResponse.__struct_fields__)
    assert set(answered) == described


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A desk on a port."""
    with live(tmp_path_factory.mktemp("desk")) as there:
        yield there


def there(told: dict[str, Any]) -> dict[str, Any]:
    """Return the description with names that are there in the place of any names: others are answered 404."""
    told = copy.deepcopy(told)
    for operation in [operation for path in told["paths"].values() for operation in path.values()]:
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                parameter["schema"] = {
                    "enum": {"experiment": ["demo"], "name": ["spare", "a-b"]}.get(parameter["name"], ["e"])
                }
    return told


OPERATIONS = [(route.method, route.path) for route in ROUTES]


def conforms(desk: Live, method: str, path: str, examples: int) -> None:
    """Send what the description allows and what it forbids, and hold the answers to it."""
    schema: Any = schemathesis.openapi.from_dict(there(TOLD))
    schema.config.update(base_url=desk.address)
    operation = schema[path][method]

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def ask(case: Any) -> None:
        checks = CHECKS if path in BATCHES else [*CHECKS, schemathesis.checks.negative_data_rejection]
        case.call_and_validate(headers={"Authorization": f"Bearer {desk.admin}"}, checks=checks)

    told = TOLD["paths"][path][method.lower()]
    takes = told["parameters"] or "requestBody" in told  # else nothing can be wrong
    for mode in schemathesis.GenerationMode if takes else [schemathesis.GenerationMode.POSITIVE]:
        given(case=operation.as_strategy(generation_mode=mode))(ask)()


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda word: word)
def test_it_says_what_the_service_does(desk: Live, method: str, path: str) -> None:
    conforms(desk, method, path, 5)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda word: word)
def test_it_says_what_the_service_does_however_it_is_asked(desk: Live, method: str, path: str) -> None:
    conforms(desk, method, path, 100)
