"""The week of 2016-10-25, summed from the raw files and from the truth, against the table."""

import json
from collections import defaultdict
from datetime import datetime

import numpy as np
import pytest

from simulator import demo
from simulator.clock import local
from simulator.plan import Plan
from tests.simulator.reading import awk

pytestmark = pytest.mark.long

# Minimum, maximum, average and standard deviation, as in the reports.
TABLE = {
    "nodes": (1, 300, 35.66, 55.33),
    "duration": (1_932, 7_452, 6_280.82, 520.99),
    "read_gb": (0.01, 241.06, 20.36, 43.90),
    "written_gb": (0.03, 71.71, 6.87, 12.33),
    "read_gb_per_node": (0.00037, 0.81670, 0.38354, 0.19379),
    "written_gb_per_node": (0.02485, 0.23903, 0.16794, 0.03376),
    "opens": (1_368, 1_260_185, 146_459.37, 231_346.55),
    "closes": (349, 294_908, 34_155.74, 53_799.08),
}
WEEK = (local(2016, 10, 25), local(2016, 11, 1))

ENDED = r"""
    BEGIN { FS = ";" }
    $2 == "E" {
        delete value
        n = split($4, pairs, " ")
        for (i = 1; i <= n; i++) { split(pairs[i], pair, "="); value[pair[1]] = pair[2] }
        if (value["user"] == "hepprod")
            print $3, value["start"], value["end"], value["Resource_List.nodect"]
    }
"""
# The maximum of each counter of each job id: entries of pilots have one life.
MAXIMUM = r"""
    /job_stats=/ { target = $0 }
    /^- job_id:/ { job = $3 }
    / +(open|close|read_bytes|write_bytes):/ {
        name = $1; sub(":", "", name)
        figure = $0; sub(/.*(sum: *|samples: *)/, "", figure); figure += 0
        key = target " " job " " name
        if (figure > maximum[key]) maximum[key] = figure
    }
    END {
        for (key in maximum)
            if (split(key, part, " ") == 3) printf "%s %s %.0f\n", part[2], part[3], maximum[key]
    }
"""


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    out = tmp_path_factory.mktemp("week")
    plan = Plan(start=local(2016, 10, 24), end=local(2016, 11, 2), rate=0.02, trace=False)
    demo.write(plan, out)
    return out


@pytest.fixture(scope="module")
def from_files(raw):
    """Return the columns of the table, from accounting and counters by awk."""
    jobs = {}
    for line in awk(ENDED, *sorted((raw / "pbs").iterdir())):
        job, start, end, nodes = line.split()
        if WEEK[0] <= int(start) < WEEK[1]:
            jobs[job] = (int(nodes), int(end) - int(start))
    sums = defaultdict(float)
    for target in ("atlas2-MDT0000", "atlas2-oss1", "atlas2-oss2"):
        for line in awk(MAXIMUM, *sorted((raw / "job_stats" / target).iterdir())):
            job, name, figure = line.split()
            sums[job, name] += float(figure)
    nodes, duration = np.array(list(jobs.values()), dtype=float).T
    named = {
        name: np.array([sums[job, name] for job in jobs])
        for name in ("open", "close", "read_bytes", "write_bytes")
    }
    return columns(nodes, duration, *named.values())


@pytest.fixture(scope="module")
def from_truth(raw):
    truth = json.loads((raw / "truth.json").read_text())
    jobs = [
        job
        for job in truth["jobs"]
        if job["label"].startswith("panda")
        and truth["week"]["start"] <= (job["started"] or "")
        and WEEK[0] <= datetime.fromisoformat(job["started"]).timestamp() < WEEK[1]
    ]
    rows = [
        (
            job["node_count"],
            seconds(job["ended"]) - seconds(job["started"]),
            job["operations"]["open"],
            job["operations"]["close"],
            job["read_bytes"],
            job["write_bytes"],
        )
        for job in jobs
    ]
    return columns(*np.array(rows, dtype=float).T)


def seconds(stamp):
    return datetime.fromisoformat(stamp).timestamp()


def columns(nodes, duration, opens, closes, read_bytes, write_bytes):
    read, written = read_bytes / 1e9, write_bytes / 1e9
    return {
        "nodes": nodes,
        "duration": duration,
        "read_gb": read,
        "written_gb": written,
        "read_gb_per_node": read / nodes,
        "written_gb_per_node": written / nodes,
        "opens": opens,
        "closes": closes,
    }


@pytest.mark.parametrize("source", ["from_files", "from_truth"])
@pytest.mark.parametrize("name", TABLE)
def test_the_week_equals_the_table(request, source, name):
    minimum, largest, average, deviation = TABLE[name]
    values = request.getfixturevalue(source)[name]

    assert len(values) == 1_175
    assert values.min() >= minimum
    assert values.max() <= largest
    assert values.mean() == pytest.approx(average, rel=0.10)
    assert values.std() == pytest.approx(deviation, rel=0.25)


def test_files_equal_the_truth(from_files, from_truth):
    for name in TABLE:
        assert np.sort(from_files[name]) == pytest.approx(np.sort(from_truth[name]))
