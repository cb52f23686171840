"""Retention: expired rows are dropped, reports remain correct, and late data is reported."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import NotSupportedError, connection, transaction
from psycopg import sql

from ioportal.ingest.models import LateRows
from ioportal.jobs import rpc_reports
from ioportal.jobs.models import DirtyStatistics, Job, JobStatistics
from ioportal.load import retention_run
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import RetentionLog
from tests.logs import Run, at, job_stats, rpc, sacct

TRACE = "\n".join(rpc(f"12:{minute:02}:05", "1@gni") for minute in range(60))


@pytest.fixture(autouse=True)
def _retention_periods(settings):
    settings.RAW_RETENTION = timedelta(days=2)
    settings.WINDOWS_RETENTION = timedelta(days=30)
    settings.MINUTES_RETENTION = timedelta(days=180)
    settings.TOTALS_RETENTION = timedelta(days=365)
    settings.POLLS_RETENTION = timedelta(days=400)
    settings.TEN_MINUTES_RETENTION = None


@pytest.fixture
def after():
    """Run the retention stage as of a number of days from now."""
    return lambda days: retention_run.retain(datetime.now(UTC) + timedelta(days=days))


@pytest.fixture
def rows(queries):
    def count(*tables):
        names = (sql.Identifier(f"telemetry_{table}") for table in tables)
        return [queries(sql.SQL("SELECT count(*) FROM {}").format(name))[0][0] for name in names]

    return count


@pytest.fixture
def traced_job(site, logs, ingest, refresh):
    """Return job 77 of n1, which is traced for its hour."""
    ingest("sacct", logs("j", sacct(Run("77", nodes="n1"))), cluster="anvil")
    ingest("rpctrace", logs("t", TRACE), server="mds1")
    refresh()
    return Job.objects.get()


def test_retention_of_old_logs_starts_when_they_are_loaded(traced_job, after, rows):
    after(days=1)
    assert rows("rpcwindow", "attributedrpc", "rpcminute") == [60, 60, 60]

    after(days=3)
    assert rows("rpcwindow", "attributedrpc", "rpcminute") == [0, 60, 60]

    after(days=31)
    assert rows("attributedrpc", "rpcminute", "rpctenminutes", "loadtenminutes") == [0, 60, 6, 6]

    assert rows("loadwindow", "loadminute", "rpctotal", "rpctotalminute") == [0, 60, 60, 60]

    after(days=4_000)
    assert rows("rpcminute", "loadminute", "rpctenminutes", "loadtenminutes") == [0, 0, 6, 6]
    assert rows("rpctotal", "rpctotalminute", "rpctotaltenminutes") == [0, 0, 6]


def test_a_coarser_level_is_retained_as_long_as_the_finer_level(settings):
    settings.RAW_RETENTION = None

    derived = [level for level in levels.LEVELS if level.made_of]
    assert len(derived) == 14
    assert {level.retention for level in derived} == {None}


def test_statistics_and_reports_outlive_the_windows(traced_job, after, refresh, settings):
    before = JobStatistics.objects.get()
    report = rpc_reports.for_job(traced_job)
    after(days=31)

    DirtyStatistics.objects.mark([traced_job.pk])
    refresh()

    now = JobStatistics.objects.get()
    assert (now.metadata_rpcs, now.mean_service_us) == (60, before.mean_service_us)
    later = rpc_reports.for_job(traced_job)
    assert (later.overall, later.rows) == (report.overall, report.rows)
    assert (report.nodes_seen, later.nodes_seen) == (1, None)


def test_data_that_arrives_after_retention_is_reported_and_ignored(
    traced_job, after, logs, ingest, attribution, reconcile
):
    after(days=3)

    ingest(
        "rpctrace", logs("late", rpc("11:59:30", "1@gni")), server="mds1"
    )  # an hour within retention
    ingest("rpctrace", logs("later", rpc("13:00:01", "1@gni")), server="mds1")
    assert attribution() == {("job", "anvil 77"): 60, ("host", "1@gni"): 2}
    ingest("rpctrace", logs("expired", rpc("12:59:50", "3@gni")), server="mds2")
    ingest("sacct", logs("j2", sacct(Run("77", nodes="n1", end="12:30"))), cluster="anvil")

    assert attribution() == {("job", "anvil 77"): 60, ("host", "1@gni"): 2}
    assert [str(row) for row in LateRows.objects.filter(server__name="mds2")] == [
        f"mds2 {at('12:59:50')} to {at('13:00')}"
    ]
    assert "checked in part" in reconcile()


def test_windows_are_not_computed_from_expired_snapshots(
    site, logs, ingest, after, opens, reconcile
):
    """Without its previous value, a counter would be counted from zero."""

    def poll(clock, amount):
        text = job_stats("lake-MDT0000", {"login.bash": {"open": amount}}, snapshot=clock)
        ingest("job_stats", logs(f"r{clock}", text), at=at(clock).isoformat())

    poll("23:40", 1_000)
    poll("23:50", 1_010)
    after(days=3)

    poll("24:00", 1_030)
    poll("24:10", 1_060)

    assert opens() == {("process", "login.bash"): 1_040}
    assert "checked in part" in reconcile()


def test_pending_windows_are_not_dropped(traced_job):
    later = datetime.now(UTC) + timedelta(days=9)

    assert retention.old_chunks(levels.RPC_WINDOWS, later, at("12:00")) == []


def test_adjacent_dropped_intervals_are_joined(traced_job):
    for start, end in (("10:00", "11:00"), ("12:00", "13:00"), ("11:00", "12:00")):
        retention.record_dropped(levels.RPC_WINDOWS, retention.Interval(at(start), at(end)))

    assert list(RetentionLog.objects.values_list("start", "end")) == [(at("10:00"), at("13:00"))]


@pytest.mark.parametrize(
    ("level", "statement"),
    [
        pytest.param(
            levels.JOB_DELTAS,
            'ALTER TABLE "telemetry_jobdelta" SET (timescaledb.compress, '
            """timescaledb.compress_segmentby = '"target_id"', """
            """timescaledb.compress_orderby = '"end"')""",
            id="a reserved word",
        ),
        pytest.param(
            levels.IMPACT,
            'ALTER TABLE "telemetry_impactwindow" SET (timescaledb.compress, '
            """timescaledb.compress_segmentby = '"principal_id"', """
            """timescaledb.compress_orderby = '"start"')""",
            id="plain names",
        ),
        pytest.param(
            levels.IO_TEN_MINUTES,
            'ALTER TABLE "telemetry_iotenminutes" SET (timescaledb.compress, '
            """timescaledb.compress_segmentby = '"target_id"', """
            """timescaledb.compress_orderby = '"job_id", "bucket"')""",
            id="several columns",
        ),
    ],
)
def test_columns_are_quoted_in_compression_settings(level, statement):
    assert retention.enable_compression(level).as_string() == statement


@pytest.mark.django_db
@pytest.mark.parametrize("level", levels.LEVELS, ids=lambda level: level.table)
def test_compression_settings_are_columns_in_the_syntax_of_order_by(level, queries):
    """TimescaleDB parses both settings as an ORDER BY clause; so does PostgreSQL here."""
    statement = retention.enable_compression(level).as_string()
    segment_by, order_by = re.findall(r"by = '(.*?)'", statement)

    queries(f'EXPLAIN SELECT FROM "{level.table}" ORDER BY {segment_by}, {order_by}')


def test_a_failing_level_does_not_block_other_levels(traced_job, after, rows, queries):
    [(chunk,)] = queries("SELECT show_chunks('telemetry_rpcwindow')::text")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE VIEW dependent_report AS TABLE {chunk}")

    with pytest.raises(
        retention_run.RetentionFailed, match=r"of telemetry_rpcwindow: .*other objects"
    ):
        after(days=31)

    assert rows("rpcwindow", "attributedrpc", "rpcminute") == [60, 0, 60]


def test_late_data_reconciles_with_compressed_chunks(
    site, logs, ingest, after, attribution, opens, reconcile, queries, settings
):
    """With the Timescale licence chunks are compressed, also after late data."""
    settings.RAW_RETENTION = None
    ingest("rpctrace", logs("t", TRACE), server="mds1")
    for clock, amount in (("12:00", 10), ("12:10", 30)):
        text = job_stats("lake-MDT0000", {"77": {"open": amount}}, snapshot=clock)
        ingest("job_stats", logs(f"r{clock}", text), at=at(clock).isoformat())
    after(days=4)

    ingest("sacct", logs("j", sacct(Run("77", nodes="n1", end="13:00"))), cluster="anvil")
    ingest("rpctrace", logs("later", rpc("13:00:01", "1@gni")), server="mds1")
    between = job_stats("lake-MDT0000", {"77": {"open": 15}}, snapshot="12:05")
    ingest("job_stats", logs("between", between), at=at("12:05").isoformat())

    assert attribution() == {("job", "anvil 77"): 60, ("host", "1@gni"): 1}
    assert opens() == {("job", "anvil 77"): 30}
    assert "checked in part" not in reconcile()

    after(days=4)

    is_timescale = retention.licence() == "timescale"
    tables = ["telemetry_attributedrpc", "telemetry_iowindow"]
    statuses = queries(
        "SELECT DISTINCT _timescaledb_functions.chunk_status(chunk) "
        "FROM unnest(%s::text[]) AS name, show_chunks(name::regclass) AS chunk",
        tables,
    )
    assert statuses == [(1,) if is_timescale else (0,)]
    assert reconcile()


def test_late_data_may_change_any_number_of_compressed_rows(queries):
    """The database's default is 100,000 per transaction; a busy hour has more."""
    queries("SELECT time_bucket('1 day', now())")  # loads the extension and its settings

    assert queries("SHOW timescaledb.max_tuples_decompressed_per_dml_transaction") == [("0",)]


@pytest.mark.django_db
def test_compression_requires_the_timescale_licence():
    """With the Apache licence the database parses the statement but refuses it."""
    if retention.licence() == "timescale":
        assert retention.compress_old(levels.ATTRIBUTED_RPCS, datetime.now(UTC)) == 0
        return
    assert retention.licence() == "apache"
    with pytest.raises(NotSupportedError, match="license"), transaction.atomic():
        retention.compress_old(levels.ATTRIBUTED_RPCS, datetime.now(UTC))
