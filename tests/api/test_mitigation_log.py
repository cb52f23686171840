"""Mitigations logged by programs."""

import json

import pytest

from ioportal.changes.models import Mitigation

BODY = {
    "title": "Search path without Lustre",
    "kind": "environment",
    "started_at": "2017-08-18T12:00:00Z",
    "scope": "user=alice&name=relax",
    "metric": "opens",
    "factor": 0.25,
    "links": ["https://example.org/1"],
}


@pytest.fixture
def put(client, call, sam):
    """Log a mitigation with a token to write."""
    token = call("token", "create", "write", "--user", "sam")

    def send(body, key="fix-1"):
        return client.put(
            f"/api/v1/mitigations/{key}/",
            json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Token {token}"},
        )

    return send


def test_a_mitigation_is_logged_once_and_changed(put):
    first = put(BODY).json()
    again = put(BODY).json()
    changed = put(BODY | {"factor": 0.5, "cost": "1 GB of memory"}).json()

    mitigation = Mitigation.objects.get()
    url = f"http://localhost:8000/mitigations/{mitigation.pk}/"
    assert first == {"url": url, "created": True, "changed": []}
    assert again == {"url": url, "created": False, "changed": []}
    assert changed == {"url": url, "created": False, "changed": ["factor", "cost"]}
    assert (mitigation.factor, mitigation.key, mitigation.scope) == (
        0.5, "fix-1", "user=alice&name=relax",
    )  # fmt: skip
    assert [(event.by, event.text) for event in mitigation.events.order_by("pk")] == [
        ("sam", "Logged by hand."),
        ("sam", "Changed: factor, cost."),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scope": "usr=alice"}, "'usr' is not a filter"),
        ({"scope": "nodes_min=x"}, "nodes_min"),
        ({"kind": "magic"}, "'kind'"),
        ({"started_at": "2017-08-18T12:00:00"}, "timezone"),
        ({"completed_at": "2017-08-17T12:00:00Z"}, "must end after the start"),
        ({"factor": -1}, "greater than 0"),
        ({"factor": float("nan")}, "'factor'"),
        ({"factor": float("inf")}, "'factor'"),
        ({"started_at": "0001-01-01T00:00:00Z"}, "1970"),
        ({"title": "  "}, "empty"),
        ({"fix_url": "ftp://example.org/"}, "web address"),
        ({"title": ""}, "'title'"),
        ({"links": ["javascript:alert(1)"]}, "web address"),
        ({"metric": "nothing"}, "metric"),
        ({"key": "other"}, "'key'"),
        ({"notes": "\x00"}, "Null characters"),
    ],
)
def test_invalid_mitigations_are_refused(put, change, reason):
    answer = put(BODY | change)

    assert answer.status_code == 422
    assert reason in answer.json()["detail"]
    assert not Mitigation.objects.exists()
