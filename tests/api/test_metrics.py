"""What Prometheus reads."""

import io
import re

import pytest
from django.core.management import call_command

from ioportal.telemetry.models import StageFailure
from tests import batches


@pytest.fixture
def scrape(client, db):
    """Ask for the metrics as Prometheus does; return them by name and labels."""
    out = io.StringIO()
    call_command("token", "create", "metrics", stdout=out, stderr=io.StringIO())

    def read():
        answer = client.get(
            "/api/v1/metrics", headers={"Authorization": f"Token {out.getvalue().strip()}"}
        )
        assert answer.status_code == 200
        lines = re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", answer.content.decode(), re.MULTILINE)
        return {name: float(value) for name, value in lines}

    return read


def test_a_source_says_how_it_is(deliver, scrape):
    deliver(
        batches.traced(
            1,
            "12:00:00",
            "12:00:10",
            batches.window("12:00:00"),
            account={"lines": 3, "accepted": 1, "rejected": 2, "irrelevant": 0},
            spool={"batches": 4, "bytes": 12_000, "oldest_at": "2017-06-01T12:00:00Z"},
        )
    )

    told = scrape()

    of_trace = 'format="rpctrace",source="mds1-trace"'
    assert told[f"ioportal_source_rejected_lines{{{of_trace}}}"] == 2
    assert told[f"ioportal_source_spool_batches{{{of_trace}}}"] == 4
    assert told[f"ioportal_source_spool_bytes{{{of_trace}}}"] == 12_000
    assert told[f"ioportal_source_lag_seconds{{{of_trace}}}"] > 86_400
    assert told['ioportal_source_problems{format="sacct",source="anvil-jobs"}'] == 1
    assert 'ioportal_source_lag_seconds{format="sacct",source="anvil-jobs"}' not in told


def test_what_waits_for_a_stage_is_counted_until_it_is_done(deliver, charge, scrape):
    deliver(batches.traced(1, "12:00:00", "12:00:10", batches.window("12:00:00")))
    waiting = 'ioportal_pending_rows{kind="traces",stage="attribution"}'

    before = scrape()[waiting]
    charge()

    assert (before, scrape()[waiting]) == (1, 0)


def test_requests_of_the_web_process_are_among_them(client, scrape):
    client.get("/healthz")
    client.get("/api/v1/openapi.json")

    told = scrape()

    assert any(name.startswith("django_http_requests_latency") for name in told)
    assert told["ioportal_database_bytes"] > 1_000_000


def test_failing_stages_and_free_space_are_among_them(scrape, settings, tmp_path):
    settings.DATABASE_FOLDERS = [str(tmp_path)]
    StageFailure.objects.record("retention", ValueError("no"))

    metrics = scrape()

    assert metrics['ioportal_stage_failures{stage="retention"}'] == 1
    assert metrics["ioportal_database_free_bytes"] > 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 401, id="nobody"),
        pytest.param({"Authorization": "Token ioportal_guessed"}, 401, id="a guess"),
    ],
)
def test_metrics_are_not_for_strangers(client, db, headers, status):
    assert client.get("/api/v1/metrics", headers=headers).status_code == status


def test_metrics_are_not_for_agents(client, token):
    headers = {"Authorization": f"Token {token('mds1-trace')}"}

    assert client.get("/api/v1/metrics", headers=headers).status_code == 403
