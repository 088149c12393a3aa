"""The OpenAPI description against the service that it describes, with schemathesis."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from discreet.service._openapi import document
from service.chaos.living import ADMIN, Service
from service.fuzz.mutations import PLAIN, SECRET

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BANDIT = {
    "name": "known",
    "epsilon": 5.0,
    "delta": 0.01,
    "horizon": 1_000_000,
    "reward": {"wait_seconds": 0.5},
}
FEW, MANY = 12, 1000  # cases of each of 17 operations, of which some have nothing to vary
UNTIMED = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder) / "data") as one:
        line = one.line()
        assert line.ask("POST", "/v1/bandits", BANDIT)[0] == 201
        line.close()
        yield one
        said = one.log.read_text()
        assert "Traceback" not in said
        assert '"internal"' not in said
        assert SECRET not in said


OPERATIONS = [one.ok() for one in schemathesis.openapi.from_dict(document()).get_all_operations()]
operations = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.label)


def cases(service: Service, operation: APIOperation, count: int) -> None:
    """So many cases of an operation: mostly what its description allows."""

    @given(case=operation.as_strategy())
    @settings(max_examples=count, **UNTIMED)
    def each(case: schemathesis.Case) -> None:
        answered(case, f"http://127.0.0.1:{service.port}")

    each()


def answered(case: schemathesis.Case, address: str) -> None:
    """Mostly about a bandit that is there, with things that no answer may repeat."""
    text = str(case.body)
    if case.path_parameters and "bandit" in case.path_parameters and len(text) % 5:
        case.path_parameters["bandit"] = "known"
    if isinstance(case.body, dict) and "actions" in case.body and len(text) % 3 == 0:
        case.body["context"] = {"who": SECRET, "how": PLAIN}
        case.body["subject"] = SECRET
    answer = case.call_and_validate(
        base_url=address,
        checks=CHECKS,
        headers={"Authorization": f"Bearer {ADMIN}"},
        timeout=60,
    )
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert set(error) >= {"code", "message"}
        assert SECRET not in answer.text
        assert str(PLAIN) not in answer.text


@operations
def test_the_service_is_as_it_is_described(service: Service, operation: APIOperation) -> None:
    cases(service, operation, FEW)


@pytest.mark.nightly
@operations
def test_the_service_is_as_it_is_described_in_ten_thousand_cases(
    service: Service, operation: APIOperation
) -> None:
    cases(service, operation, MANY)
