"""Metrics for Prometheus."""

import pytest

from ioportal.telemetry.models import StageFailure
from tests import batches


def test_metrics_describe_each_source(deliver, scrape):
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

    metrics = scrape()

    labels = 'format="rpctrace",source="mds1-trace"'
    assert metrics[f"ioportal_source_rejected_lines{{{labels}}}"] == 2
    assert metrics[f"ioportal_source_spool_batches{{{labels}}}"] == 4
    assert metrics[f"ioportal_source_spool_bytes{{{labels}}}"] == 12_000
    assert metrics[f"ioportal_source_lag_seconds{{{labels}}}"] > 86_400
    assert metrics['ioportal_source_problems{format="sacct",source="anvil-jobs"}'] == 1
    assert 'ioportal_source_lag_seconds{format="sacct",source="anvil-jobs"}' not in metrics


def test_pending_rows_are_counted_until_their_stage_runs(deliver, attribute, scrape):
    deliver(batches.traced(1, "12:00:00", "12:00:10", batches.window("12:00:00")))
    metric = 'ioportal_pending_rows{kind="traces",stage="attribution"}'

    before = scrape()[metric]
    attribute()

    assert (before, scrape()[metric]) == (1, 0)


def test_metrics_include_web_requests_and_database_size(client, scrape):
    client.get("/healthz")
    client.get("/api/v1/openapi.json")

    metrics = scrape()

    assert any(name.startswith("django_http_requests_latency") for name in metrics)
    assert metrics["ioportal_database_bytes"] > 1_000_000


def test_metrics_include_stage_failures_and_free_space(scrape, settings, tmp_path):
    settings.DATABASE_FOLDERS = [str(tmp_path)]
    StageFailure.objects.record("retention", ValueError("no"))

    metrics = scrape()

    assert metrics['ioportal_stage_failures{stage="retention"}'] == 1
    assert metrics["ioportal_database_free_bytes"] > 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 401, id="no token"),
        pytest.param({"Authorization": "Token ioportal_guessed"}, 401, id="a guess"),
    ],
)
def test_metrics_require_a_valid_token(client, db, headers, status):
    assert client.get("/api/v1/metrics", headers=headers).status_code == status


def test_tokens_of_agents_do_not_permit_metrics(client, token):
    headers = {"Authorization": f"Token {token('mds1-trace')}"}

    assert client.get("/api/v1/metrics", headers=headers).status_code == 403
