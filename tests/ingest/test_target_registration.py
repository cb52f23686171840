"""Registration of targets by the names in a dump."""

import pytest
from django.core.management import CommandError

from collectors.source import CHUNK_BYTES
from tests.logs import at, job_stats, md_stats

pytestmark = pytest.mark.usefixtures("everything_reconciles")

MDT = "lake-MDT0000"


def _osts(count, jobs=1):
    """Return the job_stats of a number of OSTs."""
    entry = {"write_bytes": (2, 4096), "punch": 3}
    return "".join(
        job_stats(f"pond-OST{n:04x}", {str(77 + job): entry for job in range(jobs)})
        for n in range(count)
    )


def test_one_message_names_all_unregistered_targets(logs, ingest, queries):
    text = job_stats(MDT, {"77": {"open": 1}}) + _osts(1_008, jobs=15)
    path = logs("dump", text + job_stats("pond-MDT0007", {}))
    assert len(text) > CHUNK_BYTES  # read in several parts

    with pytest.raises(CommandError) as error:
        ingest("job_stats", path, at=at("12:00").isoformat())

    assert str(error.value).startswith(
        f"{path}: 1,009 targets are not registered: pond-MDT0007, pond-OST[0000-03ef]. "
        "Load it with --register-targets"
    )
    assert queries("SELECT count(*) FROM telemetry_jobsnapshot") == [(0,)]


def test_targets_are_registered_by_name(logs, ingest, queries, capsys):
    path = logs("dump", _osts(18) + job_stats("pond-MDT0007", {"77": {"open": 5}}))
    options = {"at": at("12:00").isoformat(), "register-targets": True}

    account = ingest("job_stats", path, **options)

    assert account["operations"] == 18 * 5 + 5
    assert queries(
        "SELECT kind, count(*), min(t.name), max(t.name) FROM site_target t JOIN site_filesystem f "
        "ON f.id = filesystem_id WHERE f.name = 'pond' AND server_id IS NULL GROUP BY 1 ORDER BY 1"
    ) == [
        ("mdt", 1, "pond-MDT0007", "pond-MDT0007"),
        ("ost", 18, "pond-OST0000", "pond-OST0011"),
    ]
    assert capsys.readouterr().err.startswith(
        "Registered 19 targets: pond-MDT0007, pond-OST[0000-0011]. Their servers are unknown"
    )

    again = ingest("job_stats", path, **options)

    assert again["operations"] == account["operations"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        (
            ["sea-OST0001"],
            {},
            "Filesystem sea is not registered. Add it as [[filesystem]], or name ",
        ),
        (
            ["lake-OST0002", "oss1"],
            {},
            "Not target names such as lake-OST0001: 'oss1'. Register them as [[target]].",
        ),
        (
            ["sea-OST0001", "bay-OST0001"],
            {"filesystem": "pond"},
            "The targets belong to 2 filesystems: bay, sea. Load one at a time.",
        ),
    ],
)
def test_targets_that_cannot_be_identified_are_not_registered(
    logs, ingest, queries, targets, options, message
):
    before = queries("SELECT name FROM site_target ORDER BY 1")
    path = logs("dump", "".join(job_stats(target, {"77": {"open": 1}}) for target in targets))

    with pytest.raises(CommandError) as error:
        ingest(
            "job_stats",
            path,
            **{"at": at("12:00").isoformat(), "register-targets": True} | options,
        )

    assert str(error.value).startswith(f"{path}: {message}")
    assert queries("SELECT name FROM site_target ORDER BY 1") == before


def test_a_filesystem_name_may_differ_from_its_name_in_lustre(logs, ingest, queries):
    path = logs("dump", md_stats("scratch-MDT0000", {"open": 1}))

    ingest(
        "md_stats",
        path,
        **{"at": at("12:00").isoformat(), "register-targets": True, "filesystem": "pond"},
    )

    assert queries(
        "SELECT f.name FROM site_target t JOIN site_filesystem f ON f.id = t.filesystem_id "
        "WHERE t.name = 'scratch-MDT0000'"
    ) == [("pond",)]
