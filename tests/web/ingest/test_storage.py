"""The storage page, and its forecasts of table sizes."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.ingest.models import LateRows
from ioportal.site.models import Server
from ioportal.telemetry.models import TableSize
from ioportal.telemetry.storage import Growth
from tests.logs import at
from tests.web.reading import json_of


@pytest.mark.usefixtures("heavy_job")
def test_the_storage_page_has_every_level(as_staff, django_assert_num_queries):
    as_staff.get("/ingest/storage/")
    with django_assert_num_queries(36):
        page = as_staff.get("/ingest/storage/").content.decode()
    rows = json_of(as_staff.get("/ingest/storage/?format=json"))

    by_table = {row["table"]: row for row in rows["rows"]}
    assert len(by_table) == 23
    assert by_table["telemetry_rpcwindow"]["chunks"] == 1
    assert by_table["telemetry_rpcwindow"]["bytes"] > 0
    assert by_table["telemetry_rpcwindow"]["bytes_per_day"] > 0
    assert rows["licence"] in {"apache", "timescale"}
    for row in rows["rows"]:
        assert row["table"].removeprefix("telemetry_") in page


def test_an_empty_database_has_a_storage_page(as_staff):
    page = as_staff.get("/ingest/storage/").content.decode()

    assert "No late data." in page


def test_forecasts_include_tables_without_retention(as_staff):
    before = json_of(as_staff.get("/ingest/storage/?format=json"))
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    TableSize.objects.create(table="jobs_job", day=yesterday, bytes=0)

    page = as_staff.get("/ingest/storage/").content.decode()
    after = json_of(as_staff.get("/ingest/storage/?format=json"))

    assert "jobs_job" in page
    assert after["bytes_in_a_year"] > before["bytes_in_a_year"]


@pytest.mark.usefixtures("heavy_job")
def test_late_data_is_listed(as_staff):
    LateRows.objects.create(
        server=Server.objects.get(name="mds1"), start=at("12:00"), end=at("13:00")
    )

    page = as_staff.get("/ingest/storage/").content.decode()

    assert "trace of mds1" in page


@pytest.mark.parametrize(
    ("growth", "days", "expected"),
    [
        pytest.param(Growth(50, 10, None, 1), 30, 350, id="no retention limit"),
        pytest.param(Growth(50, 10, 20, 1), 5, 100, id="before the first drop"),
        pytest.param(Growth(50, 10, 20, 1), 30, 210, id="steady size"),
        pytest.param(Growth(900, 10, 20, 1), 5, 900, id="old rows not yet dropped"),
        pytest.param(Growth(900, 10, 20, 1), 21, 210, id="old rows dropped"),
        pytest.param(Growth(50, None, 20, 1), 30, None, id="unknown growth"),
    ],
)
def test_size_after_some_days(growth, days, expected):
    assert growth.after(days) == expected
