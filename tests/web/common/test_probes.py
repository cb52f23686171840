"""Liveness and readiness probes."""

import pytest
from django.db import connection

from ioportal.celery import app


def test_liveness_needs_no_database(client):
    answer = client.get("/healthz", headers={"Host": "10.2.3.4:8000"})

    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_readiness_accepts_any_host_name(client, settings):
    settings.SECURE_SSL_REDIRECT = True

    answer = client.get("/readyz", headers={"Host": "10.2.3.4:8000"})

    assert answer.status_code == 200
    assert answer.json() == {"database": "ok", "broker": "ok"}


@pytest.mark.django_db
def test_readiness_reports_a_missing_broker(client, monkeypatch):
    monkeypatch.setattr(app.conf, "broker_write_url", "redis://127.0.0.1:1/0")

    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"database": "ok", "broker": "unavailable"}


@pytest.mark.django_db
def test_an_unmigrated_database_is_not_ready(client):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'ingest'")

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["database"] == "not migrated"
