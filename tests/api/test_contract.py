"""The API keeps its OpenAPI description, whatever is sent."""

import json
from datetime import timedelta

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis import checks

from ioportal.api import authentication
from ioportal.api.look_up.fields import EXAMPLE, FIELDS, JOB_FIELDS, PANDA_FIELDS
from ioportal.api.urls import api
from ioportal.core.throttling.counters import Limit
from tests.properties import examples, is_deep

pytestmark = [pytest.mark.django_db, pytest.mark.long]

description = schemathesis.openapi.from_dict(json.loads(json.dumps(api.get_openapi_schema())))
description.app = get_wsgi_application()


@schemathesis.serializer("message/rfc822")
def _raw(_context, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")


@pytest.fixture(autouse=True)
def _one_connection():
    """Keep the connection with the transaction of the test, as Django's test client does."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(autouse=True)
def _many_invalid_tokens(monkeypatch):
    """Do not limit the requests without a valid token, which are among those sent."""
    unlimited = Limit("invalid tokens", 1_000_000, timedelta(seconds=1))
    monkeypatch.setattr(authentication, "_INVALID_TOKENS", unlimited)


@pytest.fixture
def secrets(call, sam, sources):
    """Secrets of tokens by the start of the addresses that need them."""
    secret_of = {
        "/api/v1/bounces": call("token", "create", "bounces"),
        "/api/v1/ingest": call("token", "create", "ingest", "--source", "mds1-trace"),
        "/api/v1/metrics": call("token", "create", "metrics"),
    }
    staff = call("token", "create", "write", "--user", sam.username)

    def secret(path):
        return next((value for start, value in secret_of.items() if path.startswith(start)), staff)

    return secret


@description.parametrize()
@settings(
    max_examples=examples(10),
    derandomize=not is_deep(),  # a run tests its own changes; `make test-deep` tries new examples
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_keeps_its_description(case, secrets):
    token = {"Authorization": f"Token {secrets(case.operation.path)}"}

    case.call_and_validate(
        headers={"Accept-Encoding": "identity", **token},
        # Dates in order, known names of fields: some values are valid only together.
        excluded_checks=[checks.positive_data_acceptance],
    )


def test_every_operation_has_a_summary_examples_credentials_and_errors():
    described = api.get_openapi_schema()
    operations = [each for methods in described["paths"].values() for each in methods.values()]

    assert described["openapi"].startswith("3.1")
    assert operations
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        assert [*operation["security"][0], *operation["security"][1]] == ["Token", "Bearer"]
        assert {400, 401, 403, 429, 500, 503} <= operation["responses"].keys()
        for status, response in operation["responses"].items():
            if status >= 400:
                example = response["content"]["application/problem+json"]["example"]
                assert example["status"] == status
            if status == 200 and "requestBody" not in operation:
                assert any("example" in body for body in response["content"].values())
        for body in operation.get("requestBody", {}).get("content", {}).values():
            assert (
                "example" in body or "examples" in str(body["schema"]) or "$ref" in body["schema"]
            )


def test_every_field_of_the_look_up_is_described():
    assert {*FIELDS} == {*PANDA_FIELDS, *JOB_FIELDS}
    assert {*EXAMPLE} == {*PANDA_FIELDS}


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_refused_with_those_that_are_allowed(client, method):
    answer = getattr(client, method)("/api/v1/jobs/query/")

    assert (answer.status_code, answer["Allow"]) == (405, "GET, POST")
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "method"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("GET", "panda/jobs/?jeditaskid=K", None, 200, id="an id that none can have"),
        pytest.param("POST", "jobs/query/", {"batchid": None}, 400, id="null instead of ids"),
        pytest.param("POST", "jobs/query/", {"pandaid": [True]}, 400, id="an id that is no number"),
        pytest.param(
            "PUT",
            "mitigations/x/",
            {"title": "x", "kind": "other", "started_at": "2017-08-23T18:06:40-21:27"},
            200,
            id="a zone that PostgreSQL does not know",
        ),
    ],
)
def test_requests_that_once_broke_the_contract(client, secrets, method, path, body, status):
    answer = client.generic(
        method,
        f"/api/v1/{path}",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Token {secrets('')}"},
    )

    assert answer.status_code == status
