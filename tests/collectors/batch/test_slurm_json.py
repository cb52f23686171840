"""Slurm's JSON of every version is parsed into the same table as its text."""

import io
import json
import subprocess
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from collectors import json_stream
from collectors.batch import sacct, squeue
from collectors.parsed import Account
from collectors.source import Source
from tests.collectors.lustre.counters import FIXTURES, samples

OURS = FIXTURES / "slurm_json"
BERLIN = ZoneInfo("Europe/Berlin")
T = 1_730_000_000
ANSWERS = [
    *(pytest.param(path, id=path.stem) for path in sorted(OURS.glob("s[aq]*.json"))),
    *samples("slurm_json"),
]
COUNT = (
    "import json, sys; parsed_jobs = json.load(sys.stdin); jobs = parsed_jobs['jobs']; "
    "print(len(jobs), sum(len(job.get('steps', ())) for job in jobs), "
    "sum(len(v) if isinstance(v, list) else 1 for k, v in parsed_jobs.items() if k != 'jobs'))"
)


def at(seconds):
    return datetime.fromtimestamp(T + seconds, UTC)


@pytest.fixture
def read(whole):
    def run(text, parse=sacct.parse):
        data = text if isinstance(text, bytes) else json.dumps(text).encode()
        return whole(parse(Source(io.BytesIO(data), "a text"), BERLIN))

    return run


@pytest.fixture
def jobs(read):
    """Return the records of one of our files by batch id and launch."""

    def run(name):
        parsed = read((OURS / name).read_bytes())
        assert parsed.rejects.rows() == []
        return {(row["batch_id"], row["launch"]): row for row in parsed.table.to_dicts()}

    return run


@pytest.mark.parametrize("path", ANSWERS)
def test_every_job_and_step_becomes_a_row(path, read):
    done = subprocess.run(
        ["python3", "-c", COUNT], input=path.read_bytes(), capture_output=True, check=True
    )
    in_file, steps, others = map(int, done.stdout.split())

    parsed = read(path.read_bytes())

    assert parsed.account == Account(in_file + steps + others, in_file + steps, 0, others)
    assert parsed.table.filter(launch="").height == in_file
    assert parsed.table["submitted_at"].null_count() == steps


def test_json_and_text_give_equal_records(jobs, read):
    text = (
        b"JobID|JobIDRaw|Cluster|Partition|Account|User|Submit|Start|End|Elapsed|ExitCode|State|"
        b"NNodes|AllocCPUS|TotalCPU|Timelimit|NodeList|JobName\n"
        b"710_3|711|anvil|batch|forge|alice|1730000000|1730000100|1730000700|00:10:00|0:9|FAILED|"
        b"2|64|00:09:50|01:00:00|n[01-02]|smelt\n"
    )

    [of_text] = read(text).table.drop("line").to_dicts()
    of_json = jobs("sacct_23.02.json")["711", ""]

    assert {name: of_json[name] for name in of_text} == of_text


def test_a_start_equal_to_eligibility_is_corrected(jobs):
    parsed_jobs = jobs("sacct_22.05.json")

    assert parsed_jobs["701", ""]["started_at"] == at(600)  # an hour before its end
    assert parsed_jobs["702", ""]["started_at"] == at(900)  # its first step's
    assert parsed_jobs["703", ""]["started_at"] is None  # it waited until it was cancelled
    assert parsed_jobs["703", ""]["ended_at"] == at(100)


def test_steps_are_launches_under_their_names(jobs):
    assert jobs("sacct_23.02.json")["711", "0"]["name"] == "hammer"
    assert jobs("sacct_24.11.json")["721", "batch"]["nodes"] == "n01"


def test_flags_refine_the_state(jobs):
    parsed_jobs = jobs("sacct_24.11.json")
    queued = jobs("squeue_24.11.json")

    assert parsed_jobs["723", ""]["state"] == "running"  # COMPLETING: its nodes are held
    assert parsed_jobs["723", ""]["ended_at"] is None
    assert queued["734", ""]["state"] == "running"
    assert queued["734", ""]["ended_at"] is None


def test_pending_array_tasks_share_a_record(jobs):
    waiting = jobs("sacct_24.11.json")["722", ""]

    assert (waiting["array_index"], waiting["state"]) == ("1-3,7", "pending")
    assert waiting["name"] == 'Größe | mit "Strich"'
    assert waiting["time_limit_s"] is None


def test_other_objects_are_rejected(read):
    for text in ((OURS / "other.json").read_bytes(), [{"time": 1}], {"jobs": [1, "x", {}]}):
        parsed = read(text)

        assert parsed.table.is_empty()
        assert parsed.account.rejected == parsed.account.lines > 0


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        ("job_id", None, "JobID '' is not a job id"),
        ("job_id", True, "job_id is not a number"),
        ("state", "COMPLETED", "state is not an object"),
        ("state", {"current": []}, "state '[]' is not a word, nor a list of words"),
        ("user", ["alice"], "user is not a text"),
        ("nodes", "n[1-99999999]", "more than 200000"),
        ("time", {"submission": 12}, "12 is not the time of a job in epoch seconds"),
    ],
)
def test_a_bad_value_rejects_only_its_record(read, member, value, reason):
    text = json.loads((OURS / "sacct_24.11.json").read_text())
    bad = {**text["jobs"][0], member: value, "steps": []}

    parsed = read({"jobs": [text["jobs"][2], bad, text["jobs"][2]]})

    assert parsed.table["line"].to_list() == [1, 3]
    [(line, _, why)] = parsed.rejects.rows()
    assert line == 2
    assert reason in why


def test_a_cut_response_is_rejected(read):
    text = (OURS / "sacct_24.11.json").read_bytes()

    parsed = read(text[: len(text) // 2])

    assert parsed.account.rejected > 0
    assert parsed.table.height == parsed.account.accepted


def test_a_job_of_thousands_of_steps_is_read(read):
    text = json.loads((OURS / "sacct_24.11.json").read_text())
    job = text["jobs"][0]
    job["steps"] = job["steps"] * 2_000

    assert len(json.dumps(job)) > json_stream.LONGEST
    assert read({"jobs": [job]}).table.height == 2_001


@pytest.mark.parametrize("name", ["slurm_squeue/bars.txt", "slurm_json/squeue_24.11.json"])
def test_a_queue_has_running_and_pending_jobs(read, name):
    parsed = read((FIXTURES / name).read_bytes(), squeue.parse)

    rows = {row["batch_id"]: row for row in parsed.table.to_dicts()}
    assert parsed.rejects.rows() == []
    assert rows["733"]["array_index"] == "5"
    assert rows["731"]["nodes"] == "n[01-02]"
    assert (rows["731"]["submitted_at"], rows["731"]["started_at"]) == (at(0), at(30))
    assert {row["ended_at"] for row in rows.values()} == {None}
    assert rows["731"]["time_limit_s"] == 7200
    # The start of what waits is what Slurm expects.
    assert (rows["732"]["state"], rows["732"]["started_at"]) == ("pending", None)
    assert rows["734"]["state"] == "running"


def test_queue_times_are_read_in_the_zone_of_the_cluster(read):
    parsed = read((FIXTURES / "slurm_squeue/local.txt").read_bytes(), squeue.parse)

    rows = {row["batch_id"]: row for row in parsed.table.to_dicts()}
    assert rows["751"]["started_at"] == at(30)
    assert rows["751"]["ended_at"] is None
    assert rows["752"]["nodes"] == ""


def test_a_queue_without_states_or_bars_is_refused_with_the_remedy(read):
    plain = (
        b" JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 731 batch x y R 1:00 1 n1\n"
    )
    stateless = b"JOBID|NODELIST\n731|n[01-02]\n"

    assert "is not the output of squeue" in read(plain, squeue.parse).rejects["reason"][0]
    assert "%T" in read(stateless, squeue.parse).rejects["reason"][0]
