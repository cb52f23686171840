"""Reconciliation adds up the stored rows again and reports every modification."""

import pytest
from django.core.management import CommandError
from django.db import connection, transaction

from tests.logs import Run, at, job_stats, md_stats, panda, panda_job, rpc, sacct


@pytest.fixture
def loaded(site, logs, ingest):
    """Load segments of every kind."""
    ingest("sacct", logs("s", sacct(Run("77"), Run("78", nodes="n3"))), cluster="anvil")
    ingest("panda", logs("w", panda(panda_job(1), panda_job(2))), cluster="anvil")
    trace = [rpc("12:00", "1@gni"), rpc("12:05", "3@gni"), rpc("12:06", "9@gni"), "Handled RPC"]
    ingest("rpctrace", logs("t", *trace), server="mds1")
    for clock, opens in (("12:00", 3), ("12:10", 8)):
        moment = at(clock).isoformat()
        entries = {"77": {"open": opens}, "79": {"open": 1}}
        ingest("job_stats", logs(f"j{clock}", job_stats("lake-MDT0000", entries)), at=moment)
        ingest("md_stats", logs(f"m{clock}", md_stats("lake-MDT0000", {"open": opens})), at=moment)


@pytest.mark.usefixtures("loaded")
def test_unmodified_segments_reconcile(reconcile):
    assert reconcile() == "7 segments reconcile."


MODIFICATIONS = [
    "UPDATE telemetry_rpcwindow SET count = count + 1",
    "DELETE FROM telemetry_rpcwindow",
    "UPDATE telemetry_attributedrpc SET count = count - 1 WHERE job_id <> 0",
    "DELETE FROM telemetry_attributedrpc WHERE job_id = 0",
    "INSERT INTO telemetry_attributedrpc SELECT * FROM telemetry_attributedrpc",
    "UPDATE telemetry_jobsnapshot SET open = open + 1",
    "DELETE FROM telemetry_jobsnapshot WHERE open = 1",
    "UPDATE telemetry_iowindow SET open = open + 1 WHERE job_id <> 0",
    "DELETE FROM telemetry_iowindow WHERE job_id = 0",
    "UPDATE telemetry_targetsnapshot SET open = 0",
    "DELETE FROM ingest_accountingrecord WHERE line = 2",
    "DELETE FROM ingest_accountingrecord WHERE workload_job_id IS NOT NULL",
    "DELETE FROM jobs_workloadjob_jobs WHERE id = (SELECT min(id) FROM jobs_workloadjob_jobs)",
    "UPDATE jobs_workloadjob_jobs SET job_id = (SELECT id FROM jobs_job WHERE batch_id = '78')",
    "UPDATE jobs_workloadjob SET batch_id = '78' WHERE panda_id = 2",
    "UPDATE ingest_segment SET rejected_by_reason = '{}' WHERE rejected > 0",
    "UPDATE ingest_segment SET records = records - 1 WHERE format = 'sacct'",
]


@pytest.mark.long
@pytest.mark.usefixtures("loaded")
def test_every_modification_is_reported(call, subtests):
    for modification in MODIFICATIONS:
        with subtests.test(modification), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(modification)
                assert cursor.rowcount

            with pytest.raises(CommandError, match=r"^\d+ differences in 7 segments\.$"):
                call("reconcile")
            transaction.set_rollback(True)


@pytest.mark.usefixtures("loaded")
def test_a_difference_names_its_segment_and_counts(call, capsys):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE telemetry_attributedrpc SET count = count + 4 WHERE job_id <> 0")

    with pytest.raises(CommandError):
        call("reconcile")

    assert "/t: 3 operations expected, 11 attributed" in capsys.readouterr().err


@pytest.mark.usefixtures("site")
def test_an_empty_database_reconciles(reconcile):
    assert reconcile() == "0 segments reconcile."
