"""Reads that are loaded in one command: one transaction, the same result as one by one."""

import random
from importlib import import_module

import pytest
from django.core.management import CommandError
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from ioportal.ingest import attribution_stage
from ioportal.ingest.models import DirtyReads
from tests.logs import at, job_stats, md_stats

TARGETS = ("lake-MDT0000", "lake-OST0000", "lake-OST0001")
RESULTS = (
    """
    SELECT name, digest, format, start, "end", lines, accepted, rejected, irrelevant, records,
        operations, rejected_by_reason::text
    FROM ingest_segment ORDER BY name
    """,
    """
    SELECT g.name, t.name FROM ingest_segment_targets m
    JOIN ingest_segment g ON g.id = m.segment_id JOIN site_target t ON t.id = m.target_id
    ORDER BY 1, 2
    """,
    """
    SELECT g.name, r.line, r.reason, r.text
    FROM ingest_reject r JOIN ingest_segment g ON g.id = r.segment_id ORDER BY 1, 2
    """,
    """
    SELECT g.name, c.source, c.source_id, c.start, c."end"
    FROM telemetry_coverage c JOIN ingest_segment g ON g.id = c.segment_id ORDER BY 1, 2, 3
    """,
    """
    SELECT g.name, s.text, w.start, w."end", w.target_id, w.basis, w.kind, w.open
    FROM telemetry_iowindow w JOIN ingest_segment g ON g.id = w.segment_id
    JOIN site_sourcejobid s ON s.id = w.source_job_id ORDER BY 1, 2, 3, 5
    """,
)


@pytest.fixture
def random_reads(logs):
    """Write reads with jobs that come and go, counters that restart, and unreadable lines."""

    def write(seed):
        chance = random.Random(seed)  # noqa: S311  (reproducible)
        counts = {}
        files = []
        for minute in sorted(chance.sample(range(60), 12)):
            clock = f"12:{minute:02}"
            texts = []
            for target in chance.sample(TARGETS, chance.randint(1, 3)):
                jobs = {}
                for job in chance.sample(["1", "2", "3", "cp.0"], chance.randint(0, 4)):
                    total = 0 if chance.random() < 0.1 else counts.get((target, job), 0)
                    counts[target, job] = total + chance.randint(0, 50)
                    jobs[job] = {"open": counts[target, job]}
                texts.append(job_stats(target, jobs, snapshot=clock))
                if chance.random() < 0.2:
                    texts.append("  open: { samples:\n")
            files.append(logs(f"{clock}.txt", *texts, read_at=at(clock)))
        return files

    return write


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def results(queries):
    return [queries(query) for query in RESULTS]


@pytest.mark.parametrize("seed", range(4))
def test_a_group_has_the_results_of_single_loads(random_reads, ingest, queries, site, seed):
    files = random_reads(seed)
    with transaction.atomic():
        account = ingest("job_stats", *files)
        together = results(queries)
        transaction.set_rollback(True)

    shuffled = random.Random(seed).sample(files, len(files))  # noqa: S311  (reproducible)
    singles = [ingest("job_stats", file) for file in shuffled]

    assert results(queries) == together
    assert together[-1]
    assert account["lines"] == sum(single["lines"] for single in singles)
    assert account["rejected"] == sum(single["rejected"] for single in singles)


def test_reads_between_loaded_ones_have_the_results_of_loading_in_order(
    random_reads, ingest, queries, site
):
    files = random_reads(5)
    with transaction.atomic():
        ingest("job_stats", *files)
        in_order = results(queries)
        transaction.set_rollback(True)

    ingest("job_stats", *files[::3])
    ingest("job_stats", *files[1::3], *files[2::3])

    assert results(queries) == in_order


@pytest.mark.parametrize("limit", [1, 3, 7, 14])
def test_reads_that_arrive_during_attribution_have_the_results_of_loading_in_order(
    random_reads, ingest, queries, site, monkeypatch, limit
):
    """Between reads that are attributed together, and after them, others are pending."""
    files = random_reads(6)
    with transaction.atomic():
        ingest("job_stats", *files)
        in_order = results(queries)
        transaction.set_rollback(True)
    ingest("job_stats", files[0], files[-1])
    with monkeypatch.context() as patch:
        patch.setattr(attribution_stage, "attribute_pending", lambda *_, **__: 0)
        ingest("job_stats", *files[1:-1])
    later = DirtyReads.objects.order_by("-end")[:6]
    DirtyReads.objects.filter(pk__in=[read.pk for read in later]).update(has_rows=True)

    while attribution_stage.attribute_pending(limit):
        pass

    assert results(queries) == in_order


def test_an_upgrade_removes_windows_across_reads(random_reads, ingest, queries, site, reconcile):
    """Earlier versions kept them where reads arrived during attribution."""
    files = random_reads(6)
    ingest("job_stats", files[0], files[-1])
    execute(
        "CREATE TEMP TABLE across ON COMMIT DROP AS "
        'SELECT * FROM telemetry_iowindow WHERE start < "end"'
    )
    ingest("job_stats", *files)
    in_order = results(queries)
    execute("INSERT INTO telemetry_iowindow SELECT * FROM across")
    execute(import_module("ioportal.ingest.migrations.0004_windows_across_reads").MARK)

    assert reconcile()

    assert results(queries) == in_order


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("job_stats", lambda number: job_stats(TARGETS[0], {"1": {"open": number}})),
        ("md_stats", lambda number: md_stats(TARGETS[0], {"open": number})),
    ],
    ids=["job_stats", "md_stats"],
)
def test_statements_do_not_depend_on_the_number_of_files(site, logs, ingest, form, text):
    def statements(hour, files):
        clocks = [f"{hour}:{minute:02}" for minute in range(files)]
        reads = [logs(c, text(n), read_at=at(c)) for n, c in enumerate(clocks, 1)]
        with CaptureQueriesContext(connection) as captured:
            ingest(form, *reads)
        return len(captured)

    statements("10", 2)  # names are new

    assert statements("11", 3) == statements("12", 30)


def test_all_files_but_the_refused_ones_are_loaded(site, logs, call, queries):
    clocks = ("12:00", "12:01", "12:02", "12:03")
    names = (TARGETS[0], "lake-MDT0009", TARGETS[0], "lake-MDT0008")
    files = [
        logs(clock, job_stats(name, {"1": {"open": 1}}), read_at=at(clock))
        for clock, name in zip(clocks, names, strict=True)
    ]

    with pytest.raises(CommandError) as refused:
        call("ingest", "job_stats", *files)

    unknown, unknown_too = str(refused.value).split("\n")
    assert "lake-MDT0009" in unknown
    assert "lake-MDT0008" in unknown_too
    assert "Loaded: 2 of 4 files." in unknown_too
    assert queries("SELECT count(*) FROM ingest_segment") == [(2,)]


@pytest.mark.parametrize("options", [(), ("--replace",)])
def test_two_reads_of_a_target_at_the_same_time_are_refused(site, logs, call, queries, options):
    files = [
        logs(name, job_stats(TARGETS[0], {name: {"open": 1}}), read_at=at("12:00"))
        for name in ("1", "2")
    ]

    with pytest.raises(CommandError, match=r"2 and .*1 are reads of target .*1 of 2 files"):
        call("ingest", "job_stats", *files, *options)

    assert queries("SELECT right(name, 2) FROM ingest_segment") == [("/1",)]


def test_a_read_replaces_one_that_was_loaded_before(site, logs, call, queries):
    files = [
        logs(name, job_stats(TARGETS[0], {name: {"open": 1}}), read_at=at("12:00"))
        for name in ("1", "2")
    ]
    call("ingest", "job_stats", files[0])

    with pytest.raises(CommandError, match="To replace the stored one, use --replace"):
        call("ingest", "job_stats", files[1])
    call("ingest", "job_stats", files[1], "--replace")

    assert queries("SELECT right(name, 2) FROM ingest_segment") == [("/2",)]


def test_a_file_that_is_given_twice_is_loaded_once(site, logs, ingest, queries):
    file = logs("a", job_stats(TARGETS[0], {"1": {"open": 1}}), read_at=at("12:00"))

    account = ingest("job_stats", file, file)

    assert account["lines"] == 5
    assert queries("SELECT count(*) FROM ingest_segment") == [(1,)]
