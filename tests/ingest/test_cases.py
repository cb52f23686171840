"""Small inputs that were read wrongly once, from a folder next to the checkout, with right values.

Every case is loaded by command; reads of counters also by an agent's reader.
"""

from datetime import timedelta
from pathlib import Path

import pytest

from collectors.agent.files.lines import LineReader
from collectors.agent.files.tail import LogTail
from collectors.agent.polling import counters
from collectors.agent.polling.counters import CounterReader
from collectors.agent.polling.snapshots import SnapshotReader
from collectors.format import Origin
from collectors.formats import BY_NAME
from collectors.lustre.job_stats import SECOND_TARGET
from collectors.parsed import SourceUnavailable
from ioportal.core.times import moment
from ioportal.ingest.models import Segment
from ioportal.jobs.models import Job
from ioportal.site.models import Cluster, Counter, Server
from ioportal.telemetry import services
from tests.contents import rows as table_rows

CASES = Path(__file__).parents[3] / "shared" / "cases"

pytestmark = [
    pytest.mark.skipif(not CASES.exists(), reason="../shared/cases is missing"),
    pytest.mark.usefixtures("everything_reconciles"),
]


@pytest.fixture
def case():
    """Return the path of a case by its number."""

    def find(number):
        [path] = CASES.glob(f"{number}-*")
        return path

    return find


@pytest.fixture
def load_jobs(case, ingest):
    """Load accounting of a cluster; return its account and its jobs by id."""

    def load(form, number, zone="UTC"):
        Cluster.objects.filter(name="anvil").update(time_zone=zone)
        account = ingest(form, case(number), cluster="anvil")
        return account, {job.batch_id: job for job in Job.objects.all()}

    return load


def test_a_counter_cut_from_a_read_continues(case, ingest):
    for number, minute in (("01a", 0), ("01b", 1), ("01c", 2)):
        ingest("mds_stats", case(number), server="mds1", at=f"2024-03-01T15:0{minute}:00Z")

    increases = services.differences(
        Server.objects.get(name="mds1").pk,
        moment("2024-03-01T15:00:00Z"),
        moment("2024-03-01T15:02:00Z"),
        100,
    ).filter(counter_id=Counter.objects.get(name="mds_getattr").pk)
    # From 28,500 to 28,650, in two minutes.
    lengths = (increases["end"] - increases["start"]).to_list()
    assert (lengths, increases["samples"].to_list()) == ([timedelta(minutes=2)], [150])


def test_a_service_whose_only_counter_is_cut_has_no_reading(case, ingest):
    account = ingest("mds_stats", case("02"), server="mds1", at="2024-03-01T15:00:00Z")

    assert (account["rejected"], account["operations"]) == (1, 0)
    assert table_rows("telemetry_servicesnapshot") == {"telemetry_servicesnapshot": []}


def test_agents_ship_what_is_whole(case, tmp_path):
    stats = SnapshotReader(("cat", str(case("02"))), 10, BY_NAME["mds_stats"])
    [reading] = stats.read({})
    assert all(batch.rows.is_empty() for batch in reading.batches)

    kind = counters.job_counters(timedelta(minutes=10))
    unnamed = CounterReader(tmp_path, ("cat", str(case("04"))), 10, kind)
    with pytest.raises(SourceUnavailable, match="without -n"):
        list(unnamed.read({}))

    form = BY_NAME["lsf"]
    log = LogTail(str(case("06")), settled_s=0)
    lines = LineReader(form.table, log, lambda text: form.parse(text, Origin()))
    [batch] = [batch for reading in lines.read({}) for batch in reading.batches]
    lines.close()
    assert batch.rows["nodes"].to_list() == ["c1"]


def test_a_second_target_without_a_name_is_rejected(case, ingest, queries):
    account = ingest("job_stats", case("04"), target="lake-OST0000", at="2024-03-01T15:10:00Z")

    assert (account["accepted"], account["rejected"]) == (4, 4)
    assert queries("SELECT DISTINCT reason FROM ingest_reject") == [(SECOND_TARGET,)]
    assert queries(
        "SELECT i.text, s.read FROM telemetry_jobsnapshot s "
        "JOIN site_sourcejobid i ON i.id = s.source_job_id"
    ) == [("101", 9)]


@pytest.mark.parametrize(
    ("form", "number", "batch_id", "rejected"),
    [
        ("sacct", "05a", "1", 0),
        ("lsf", "06", "387", 0),
        ("lsf", "08", "387", 0),
        ("sacct", "10", "1", 1),
        ("pbs", "14", "1", 0),
        ("sacct", "19", "9", 0),
    ],
)
def test_a_job_is_read(load_jobs, form, number, batch_id, rejected):
    account, jobs = load_jobs(form, number)

    assert (account["accepted"], account["rejected"]) == (1, rejected)
    assert list(jobs) == [batch_id]
    assert jobs[batch_id].name == {"10": "job", "14": "j"}.get(number, "")
    assert jobs[batch_id].nodes == ("c1" if form == "lsf" else "n1")


def test_a_job_does_not_start_before_its_submission(load_jobs):
    _, jobs = load_jobs("sacct", "11", zone="America/Chicago")

    assert jobs["23"].submitted_at <= jobs["23"].started_at
    assert jobs["23"].ended_at - jobs["23"].started_at == timedelta(minutes=3)


@pytest.mark.parametrize(
    ("form", "number", "account"), [("cmssw_fjr", "15", (1, 0, 0)), ("strace", "16", (1, 0, 2))]
)
def test_a_run_is_read(case, ingest, form, number, account):
    loaded = ingest(form, case(number), experiment="Cases", arm="a", run="r")

    assert tuple(loaded[name] for name in ("accepted", "rejected", "irrelevant")) == account
    assert Segment.objects.count() == 1
