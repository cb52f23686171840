"""Accounting of HTCondor, LSF and Grid Engine: loaded, reconciled, linked and shown."""

from itertools import permutations
from pathlib import Path

import pytest

from ioportal.jobs.models import Allocation, Job, Launch, WorkloadJob
from tests.logs import panda, panda_job
from tests.web.reading import json_of, words_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = {
    "htcondor": FIXTURES / "htcondor_history" / "history",
    "lsf": FIXTURES / "lsf_acct" / "lsb.acct",
    "sge": FIXTURES / "sge_accounting" / "accounting",
}
SITE = "\n".join(
    f'[[cluster]]\nname = "{name}"\ntime_zone = "Europe/Berlin"\nbatch = "{name}"' for name in FILES
)


@pytest.fixture
def clusters(register):
    """A cluster of each batch system, by its name."""
    register(SITE)


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("name", FILES)
def test_accounting_loads_and_reconciles(ingest, reconcile, name):
    first = ingest(name, FILES[name], cluster=name)
    again = ingest(name, FILES[name], cluster=name)

    assert first | {"seconds": 0} == again | {"seconds": 0}
    assert reconcile() == "1 segments reconcile."
    assert (
        Job.objects.filter(cluster__name=name).count() == {"htcondor": 4, "lsf": 7, "sge": 10}[name]
    )


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize(
    ("name", "batch_id", "index", "nodes"),
    [
        ("htcondor", "4711", "1", {"wn02.example.org"}),
        ("lsf", "8002", "4", {"c3", "c4"}),
        ("sge", "902", "3", {"n1"}),
    ],
)
def test_array_tasks_hold_their_nodes(ingest, name, batch_id, index, nodes):
    ingest(name, FILES[name], cluster=name)

    job = Job.objects.get(cluster__name=name, batch_id=batch_id, array_index=index)
    held = Allocation.objects.filter(job=job).values_list("node__name", flat=True)
    assert set(held) == nodes


@pytest.mark.usefixtures("clusters")
def test_a_parallel_task_of_grid_engine_is_a_launch_of_its_job(ingest):
    ingest("sge", FILES["sge"], cluster="sge")

    launch = Launch.objects.get(cluster__name="sge")
    assert (launch.name, launch.nodes, launch.job.batch_id) == ("903.1.n3", "n3", "903")
    without_tasks = Job.objects.get(batch_id="902")
    assert without_tasks.node_count == 0  # unknown


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("order", list(permutations(("1.n3", "2.n4", "NONE"))))
def test_a_parallel_job_of_grid_engine_has_the_nodes_of_its_tasks(ingest, logs, order):
    records = FILES["sge"].read_text("latin-1").splitlines()
    [task] = (line for line in records if ":1.n3:" in line)
    [job] = (line for line in records if ":903:" in line and line != task)
    other_task = task.replace("1.n3", "2.n4").replace(":n3:", ":n4:")
    lines = {"1.n3": task, "2.n4": other_task, "NONE": job}
    for name in order:
        ingest("sge", logs(f"accounting-{name}", f"{lines[name]}\n"), cluster="sge")

    job = Job.objects.get()
    nodes = Allocation.objects.filter(job=job).values_list("node__name", flat=True)
    assert set(nodes) == {"n2", "n3", "n4"}
    assert job.node_count == 3


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("order", list(permutations(("panda", "htcondor"))))
@pytest.mark.parametrize(
    ("batchid", "index"),
    [
        ("ce1.example.org#4711.0#1714633200", "0"),
        ("ce1.example.org#4711.1", "1"),
        ("4711.0", "0"),
    ],
)
def test_panda_jobs_link_to_htcondor_jobs(ingest, logs, reconcile, order, batchid, index):
    start, end = {"0": ("07:20", "08:00"), "1": ("09:10", "09:20")}[index]
    times = {"starttime": f"2024-05-02T{start}:00Z", "endtime": f"2024-05-02T{end}:00Z"}
    changed = {"modificationtime": f"2024-05-02T{end}:00Z"}
    files = {
        "panda": logs("panda", panda(panda_job(1, batchid, **times, **changed))),
        "htcondor": FILES["htcondor"],
    }
    for form in order:
        ingest(form, files[form], cluster="htcondor")

    [job] = WorkloadJob.objects.get().jobs.all()
    assert (job.batch_id, job.array_index) == ("4711", index)
    assert reconcile() == "2 segments reconcile."


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize(
    ("name", "query", "facts"),
    [
        ("htcondor", "4711[0]", ("relax.sh", "alice", "wn01.example.org")),
        ("htcondor", "ce1.example.org#4711.0", ("relax.sh", "alice", "wn01.example.org")),
        ("lsf", "8001", ("relax", "alice", "phy12", "c[1-2]")),
        ("sge", "901", ("relax", "alice", "phy12", "n1")),
    ],
)
def test_pages_show_the_jobs(ingest, refresh, as_staff, name, query, facts):
    ingest(name, FILES[name], cluster=name)
    refresh()

    [row] = json_of(as_staff.get("/jobs/", {"q": query, "format": "json"}))["rows"]
    page = f"/jobs/{row['id']}/"
    words = words_of(as_staff.get(page))
    for fact in facts:
        assert fact in words
    assert json_of(as_staff.get(page, {"format": "json"}))["cpu_efficiency"] > 0
