"""Bad input: an error message with file, line and reason, and no partial loads."""

import gzip
import io
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
import zstandard
from django.core.management import CommandError

from ioportal.ingest.loaders.common import discard
from ioportal.ingest.models import DirtyTrace, Segment
from ioportal.telemetry import rollups
from ioportal.telemetry.models import DirtyImpact
from ioportal.telemetry.stage_runs import drain
from tests import contents
from tests.logs import (
    Run,
    alps,
    at,
    finishing,
    job_stats,
    md_stats,
    panda_job,
    pbs,
    rpc,
    sacct,
    starting,
)

pytestmark = pytest.mark.usefixtures("site")

OPTIONS = {
    "rpctrace": {"server": "mds1"},
    "job_stats": {"at": "2017-07-05T12:00:00Z"},
    "md_stats": {"at": "2017-07-05T12:00:00Z"},
    "sacct": {"cluster": "anvil"},
    "pbs": {"cluster": "birch"},
    "alps": {"cluster": "birch"},
    "panda": {"cluster": "anvil"},
}
GOOD = {
    "rpctrace": rpc("12:00"),
    "job_stats": job_stats("lake-MDT0000", {"77": {"open": 1}}),
    "md_stats": md_stats("lake-MDT0000", {"open": 1}),
    "sacct": sacct(Run("77")),
    "pbs": pbs(("E", Run("77", nodes="b1"))),
    "alps": alps(starting(9205593, "77", "12:00", "2-3", 2)),
    "panda": json.dumps(panda_job(1)),
}


FILLED_TABLES = (
    "ingest_segment", "ingest_reject", "jobs_job", "jobs_launch", "jobs_workloadjob",
    "telemetry_coverage",
)  # fmt: skip


@pytest.fixture
def refusal(ingest):
    """Ingest files, expect an error that leaves the tables empty, and return its message."""

    def run(form, *files, **options):
        arguments = {name: value for name, value in (OPTIONS[form] | options).items() if value}
        with pytest.raises(CommandError) as error:
            ingest(form, *files, **arguments)
        assert not any(contents.rows(*contents.RAW, *FILLED_TABLES).values())
        return str(error.value)

    return run


@pytest.mark.parametrize("form", OPTIONS)
def test_an_empty_file_is_refused(form, tmp_path, refusal):
    path = tmp_path / "empty.log"
    path.touch()

    assert refusal(form, path) == f"{path} is empty. Nothing was loaded."


@pytest.mark.parametrize("form", OPTIONS)
def test_a_binary_file_is_refused(form, tmp_path, refusal):
    path = tmp_path / "core.1234"
    path.write_bytes(b"".join(sha256(bytes([n])).digest() for n in range(256)) * 10)

    message = refusal(form, path)

    assert message.startswith(f"{path}: none of its ")
    assert "Nothing was loaded. Check the format." in message


@pytest.mark.parametrize("form", OPTIONS)
def test_a_file_of_another_format_is_refused(form, logs, refusal):
    for other in GOOD.keys() - {form}:
        path = logs(other, GOOD[other])

        message = refusal(form, path)

        assert message.startswith(f"{path}: none of its ")
        assert "Check the format." in message


def test_the_first_unreadable_line_is_quoted_with_its_reason(logs, refusal):
    path = logs("jobs", "77|cut")

    message = refusal("sacct", path)

    assert "Line 1: columns found: 2, expected: 26" in message


@pytest.mark.parametrize("form", OPTIONS)
def test_a_missing_file_is_refused(form, tmp_path, refusal):
    assert str(tmp_path / "gone.log") in refusal(form, tmp_path / "gone.log")
    assert "directory" in refusal(form, tmp_path)


@pytest.mark.parametrize("form", OPTIONS)
def test_compression_is_detected_from_the_content(form, tmp_path, ingest):
    plain = tmp_path / "plain.gz"
    plain.write_text(GOOD[form])
    packed = tmp_path / "packed.log"
    packed.write_bytes(gzip.compress(GOOD[form].encode()))

    first = ingest(form, plain, **OPTIONS[form])
    again = ingest(form, packed, **OPTIONS[form])

    assert first["accepted"] >= 1
    assert first | {"seconds": 0} == again | {"seconds": 0}


def test_zstd_is_read(tmp_path, ingest):
    path = tmp_path / "trace.zst"
    path.write_bytes(zstandard.compress(GOOD["rpctrace"].encode() + b"\n"))

    assert ingest("rpctrace", path, server="mds1")["operations"] == 1


def test_standard_input_is_read(ingest, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(gzip.compress(GOOD["rpctrace"].encode() + b"\n")))
    monkeypatch.setattr(sys, "stdin", text)

    assert ingest("rpctrace", "-", server="mds1")["operations"] == 1


@pytest.mark.parametrize("form", OPTIONS)
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_truncated_archive_loads_nothing(form, pack, tmp_path, refusal):
    path = tmp_path / "cut"
    noise = "".join(f"# {sha256(str(n).encode()).hexdigest()}\n" for n in range(1_000))
    archive = pack((GOOD[form] + "\n" + noise).encode())
    path.write_bytes(archive[: len(archive) * 2 // 3])

    message = refusal(form, path)

    assert message.startswith(f"{path}: cannot be read to its end: ")


def test_a_damaged_archive_prevents_loading_of_all_files(logs, tmp_path, refusal):
    damaged = tmp_path / "b.gz"
    archive = bytearray(gzip.compress("\n".join(rpc("12:05") for _ in range(1_000)).encode()))
    archive[len(archive) // 2] ^= 0xFF
    damaged.write_bytes(archive)

    assert str(damaged) in refusal("rpctrace", logs("a.log", rpc("12:00")), damaged)


@pytest.mark.parametrize("form", OPTIONS)
def test_a_huge_line_does_not_prevent_loading(form, tmp_path, ingest):
    path = tmp_path / "huge.log"
    path.write_bytes(GOOD[form].encode() + b"\n" + b"x" * 5_000_000 + b"\n")

    account = ingest(form, path, **OPTIONS[form])

    assert account["accepted"] >= 1
    assert account["lines"] == GOOD[form].rstrip("\n").count("\n") + 2 + GOOD[form].endswith("\n")


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        (
            "rpctrace",
            {"server": "mds9"},
            "server 'mds9' is not registered (registered: mds1, mds2, oss1",
        ),
        (
            "sacct",
            {"cluster": "titan"},
            "cluster 'titan' is not registered (registered: anvil, birch)",
        ),
        ("job_stats", {"target": "sea-MDT0000"}, "target 'sea-MDT0000' is not registered"),
        (
            "job_stats",
            {"filesystem": "sea"},
            "filesystem 'sea' is not registered (registered: lake, pond)",
        ),
        ("rpctrace", {"filesystem": "pond"}, "mds1 belongs to filesystem lake, not pond."),
        ("job_stats", {"filesystem": "pond"}, "lake-MDT0000 belongs to filesystem lake, not pond."),
        ("rpctrace", {"server": None}, "Give --server"),
        ("rpctrace", {"cluster": "anvil"}, "rpctrace does not take --cluster. Remove the option."),
        ("sacct", {"at": "2017-07-05T12:00:00Z"}, "sacct does not take --at. Remove the option."),
        ("sacct", {"cluster": None}, "Give --cluster"),
        ("job_stats", {"at": "noon"}, "'noon' is not a time with a zone"),
        ("job_stats", {"at": "2017-07-05T12:00:00"}, "is not a time with a zone"),
        ("job_stats", {"at": "0001-01-01T00:00:00+14:00"}, "is not a time with a zone"),
    ],
)
def test_invalid_options_are_reported_by_name(form, options, message, logs, refusal):
    assert message in refusal(form, logs("log", GOOD[form]), **options)


def test_an_unregistered_target_is_refused(logs, refusal):
    path = logs("dump", job_stats("sea-MDT0000", {"77": {"open": 1}}))

    message = refusal("job_stats", path)

    assert message.startswith(f"{path}: 1 target is not registered: sea-MDT0000.")
    assert "[[target]]" in message


def test_a_dump_without_target_names_requires_the_target_option(logs, refusal):
    text = job_stats("lake-MDT0000", {"77": {"open": 1}}).partition("\n")[2]

    assert "--target" in refusal("job_stats", logs("dump", text))
    assert "--target" in refusal("job_stats", logs("idle", "job_stats:\n"))


def test_accounting_of_another_cluster_is_refused_with_file_and_line(logs, refusal):
    path = logs("jobs", sacct(Run("77"), Run("78", cluster="titan")))

    message = refusal("sacct", path)

    assert str(path) in message
    assert "line 3 is of cluster 'titan', not of anvil" in message


def test_a_launch_that_ends_long_before_it_starts_has_no_rpcs(logs, ingest, call):
    ingest(
        "alps",
        logs(
            "l",
            alps(starting(9205593, "815", "12:00", "2-3", 2), finishing(9205593, "815", "09:00")),
        ),
        cluster="birch",
    )
    ingest("rpctrace", logs("t", rpc("08:00") + "\n" + rpc("13:00")), server="mds1")

    with pytest.raises(CommandError, match="No RPC trace covers launch 9205593"):
        call("rpc_report", "--launch", "9205593")


def test_accounting_without_submit_times_is_refused(logs, refusal):
    path = logs(
        "jobs",
        "JobID|State|Start|End|NodeList|JobName\n77|COMPLETED|2017-07-05T12:00:00|2017-07-05T13:00:00|n1|relax",
    )

    message = refusal("sacct", path)

    assert str(path) in message
    assert "Submit" in message


def test_long_names_are_truncated(logs, ingest, queries):
    long = "x" * 2_000
    run = Run("77", user=long, project=long, queue=long, name=long[:1_000])
    step = Run("77." + "s" * 300)
    ingest("sacct", logs("jobs", sacct(run, step)), cluster="anvil")

    [lengths] = queries(
        "SELECT length(owner), length(project), length(queue), length(name) FROM jobs_job"
    )
    assert lengths == (64, 128, 128, 255)
    assert queries("SELECT length(name) FROM jobs_launch") == [(64,)]


@pytest.mark.parametrize(
    "job", ["7" * 200, "x\0y", "\u00e9" * 31, "a" * 255, " ", "'; DROP TABLE jobs_job"]
)
def test_a_job_id_may_be_any_text(job, logs, ingest, reconcile):
    for clock, opens in (("12:00", 1), ("12:10", 2)):
        text = job_stats("lake-MDT0000", {job: {"open": opens}}, snapshot=clock)
        account = ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
        assert account["operations"] == 1
    ingest("rpctrace", logs("t", rpc("12:05", job=job[:31])), server="mds1")

    assert reconcile()


def test_implausibly_large_counters_are_rejected(logs, ingest, reconcile):
    huge = 2**63 - 1
    for clock in ("12:00", "12:10"):
        text = "".join(
            job_stats(
                f"lake-OST000{n}", {"77": {"read_bytes": (huge, huge), "punch": huge, "sync": n}}
            )
            for n in range(2)
        )
        account = ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
        assert account["rejected"] == 4

    assert reconcile()


@pytest.mark.long
def test_the_largest_valid_counters_do_not_overflow(logs, ingest, reconcile, refresh):
    ingest("sacct", logs("jobs", sacct(Run("77"))), cluster="anvil")
    samples, size = 2**53 - 1, 2**60 - 1
    for minute in range(0, 60, 2):
        entry = {"read_bytes": (samples, size), "write_bytes": (samples, size)}
        if minute % 4:
            entry = {"read_bytes": (0, 0), "write_bytes": (0, 0)}
        clock = f"12:{minute:02}"
        text = job_stats("lake-OST0000", {"77": entry}) + job_stats("lake-OST0001", {"77": entry})
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())

    refresh()

    assert reconcile()


def test_thousands_of_services_remain_distinct(logs, ingest, queries):
    lines = [
        rpc("12:00", thread=f"svc{''.join(chr(97 + (n // 26**k) % 26) for k in range(4))}00_001")
        for n in range(33_000)
    ]
    ingest("rpctrace", logs("t", "\n".join(lines)), server="mds1")

    assert queries(
        "SELECT count(DISTINCT s.name) FROM telemetry_rpcwindow w "
        "JOIN site_service s ON s.id = w.service_id"
    ) == [(33_000,)]


def test_a_trace_without_jobs_in_its_period_is_loaded_with_a_warning(logs, call, ingest):
    ingest("sacct", logs("jobs", sacct(Run("77"))), cluster="anvil")
    path = logs("t", rpc(datetime(2012, 3, 4, tzinfo=UTC), "1@gni"))

    output = call("ingest", "rpctrace", path, "--server", "mds1")

    assert f"{path}: anvil and birch had no job around 2012-03-04 00:00:00" in output
    assert "to a host" in output


def test_a_trace_with_jobs_in_its_period_is_loaded_without_a_warning(logs, call, ingest):
    ingest("sacct", logs("jobs", sacct(Run("77"))), cluster="anvil")

    assert "no job" not in call("ingest", "rpctrace", logs("t", rpc("12:00")), "--server=mds1")


def test_a_clock_jump_leaves_a_gap_in_coverage(logs, ingest, queries, reconcile):
    wild = datetime(2020, 1, 1, tzinfo=UTC)
    lines = [rpc("12:00:00"), rpc("12:00:05"), rpc(wild), rpc("12:00:06")]
    ingest("rpctrace", logs("t", "\n".join(lines)), server="mds1")

    assert queries('SELECT start, "end" FROM telemetry_coverage ORDER BY 1') == [
        (at("12:00:00"), at("12:00:06")),
        (wild, wild),
    ]

    ingest("rpctrace", logs("later", rpc("13:00")), server="mds1")

    assert reconcile()


def test_records_of_impossible_times_are_rejected(logs, ingest, queries):
    times = datetime(1970, 1, 2, tzinfo=UTC), datetime.now(UTC) + timedelta(days=1), at("12:00")
    account = ingest("rpctrace", logs("t", "\n".join(map(rpc, times))), server="mds1")

    assert (account["accepted"], account["rejected"]) == (1, 2)
    assert queries("SELECT line, reason FROM ingest_reject ORDER BY 1") == [
        (1, "time before 2001 or in the future"),
        (2, "time before 2001 or in the future"),
    ]
    assert queries('SELECT start, "end" FROM telemetry_coverage') == [(at("12:00"), at("12:00"))]


def test_impact_is_computed_around_slow_records_not_between_them(logs, ingest):
    """A few records with a wrong clock must not delay the impact of all others."""
    days_later = at("12:00") + timedelta(days=40)
    moments = [
        begin + timedelta(seconds=n) for begin in (at("12:00"), days_later) for n in range(9)
    ]
    slow = [rpc(moment, us=(10, 5_000_000)) for moment in moments]
    ingest("rpctrace", logs("t", "\n".join(slow)), server="mds1")
    drain(rollups.roll_up)

    marked = DirtyImpact.objects.order_by("start").values_list("start", "end")
    width = timedelta(seconds=10)
    assert list(marked) == [(begin, begin + width) for begin in (at("12:00"), days_later)]

    discard(Segment.objects.get())

    assert DirtyTrace.objects.count() == 4
    assert all(row.end - row.start < width for row in DirtyTrace.objects.all())


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        pytest.param("11/05/2017 00:30:00", "11/05/2017 01:30:00", None, id="autumn"),
        pytest.param("03/12/2017 01:30:00", "03/12/2017 03:30:00", None, id="spring"),
    ],
)
def test_accounting_is_read_across_daylight_saving_changes(start, end, hours, logs, ingest):
    record = f"{end};E;77.sdb;user=alice ctime=1488000000 exec_host=b1/0 Exit_status=0"

    account = ingest("pbs", logs("20171105", record), cluster="birch")

    assert account["rejected"] + account["accepted"] == 1


def test_a_file_name_may_contain_control_characters(ingest, refusal, tmp_path):
    path = tmp_path / ("x" * 200 + "\n\x1b[31m" + os.sep + "y")
    path.parent.mkdir()
    path.write_text(rpc("12:00") + "\n")

    assert ingest("rpctrace", path, server="mds1")["operations"] == 1
