"""The year of the simulated centre on pages: the table of one week, and the size of each step.

Only days around the steps are simulated, without background load and with one poll per day. Pages
are compared with the published table and with the simulator's truth file.
"""

import io
import json
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

import pytest
from django.core.management import call_command

from ioportal.jobs import statistics
from ioportal.telemetry.stage_runs import drain
from simulator import demo, story
from simulator.clock import DAY_S, local
from simulator.plan import FULL_POLL_S, Plan
from tests import contents
from tests.web.reading import csv_of, json_of

pytestmark = pytest.mark.long

DAYS = [
    (local(2016, 10, 24), local(2016, 11, 2)),  # the week of the table
    (local(2016, 11, 14), local(2016, 11, 17)),
    (local(2017, 4, 30), local(2017, 5, 3)),
    (local(2017, 6, 11), local(2017, 6, 14)),
    (local(2017, 7, 6, "09:30:00"), local(2017, 7, 7, "07:30:00")),
    (local(2017, 7, 17), local(2017, 7, 20)),
    (local(2017, 8, 16), local(2017, 8, 21)),
    (local(2017, 8, 28), local(2017, 8, 31)),
    (local(2017, 9, 10), local(2017, 9, 17)),
]
# Minimum, maximum, mean and standard deviation of 1,175 jobs.
TABLE = {
    "node_count": (1, 300, 35.66, 55.33),
    "duration_s": (1_932, 7_452, 6_280.82, 520.99),
    "read_bytes": (0.01e9, 241.06e9, 20.36e9, 43.90e9),
    "write_bytes": (0.03e9, 71.71e9, 6.87e9, 12.33e9),
    "read_bytes_per_node": (0.00037e9, 0.81670e9, 0.38354e9, 0.19379e9),
    "write_bytes_per_node": (0.02485e9, 0.23903e9, 0.16794e9, 0.03376e9),
    "opens": (1_368, 1_260_185, 146_459.37, 231_346.55),
    "closes": (349, 294_908, 34_155.74, 53_799.08),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folders with the raw files of each period."""
    out = tmp_path_factory.mktemp("story")
    for number, (start, end) in enumerate(DAYS):
        demo.write(Plan(start=start, end=end, rate=0, poll_s=DAY_S, trace=False), out / str(number))
    return sorted(out.iterdir())


@pytest.fixture(scope="module", autouse=True)
def _loaded(folders, django_db_setup, django_db_blocker):
    """Load the files that the pages need, once for all tests."""

    def files(pattern):
        return [str(path) for folder in folders for path in sorted(folder.glob(pattern))]

    def run(*arguments):
        call_command(*arguments, stdout=io.StringIO())

    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr("django.conf.settings.POLL_GAP", timedelta(seconds=DAY_S + 60))
        run("register", str(folders[0] / "site.toml"))
        run("ingest", "pbs", *files("pbs/*"), "--cluster", "titan")
        for folder in folders:
            run("ingest", "job_stats", *sufficient_reads(folder))
        # Around the steps that change PanDA jobs only.
        for folder in (folders[1], folders[3]):
            run("ingest", "panda", *map(str, folder.glob("panda/*")), "--cluster", "titan")
        # Only the table of the week contains bytes.
        run("ingest", "job_stats", *map(str, sorted(folders[0].glob("job_stats/*-oss*/*"))))
        drain(statistics.refresh_statistics)
        yield
        contents.remove()


def sufficient_reads(folder):
    """Return the reads of the MDT, except reads that add no entry of an idle job."""
    reads, last = [], 0
    for path in sorted(folder.glob("job_stats/atlas2-MDT0000/*")):
        read_at = path.stat().st_mtime
        in_full = story.FULL_DAYS[0] <= read_at < story.FULL_DAYS[1]
        if read_at - last >= (FULL_POLL_S if in_full else DAY_S):
            reads.append(str(path))
            last = read_at
    return reads


@pytest.fixture(autouse=True)
def _time_zone(settings):
    settings.TIME_ZONE = "America/New_York"


@pytest.fixture
def rows_of(as_staff):
    """Return the rows of a page's CSV export of the campaign's jobs in a period."""

    def run(page, start, end, **query):
        query = {"user": "hepprod", "format": "csv", "start": start, "end": end, **query}
        return csv_of(as_staff.get(page, query))

    return run


@pytest.mark.parametrize("metric", TABLE)
def test_the_week_agrees_with_the_table(rows_of, metric):
    rows = rows_of("/populations/", "2016-10-25", "2016-11-01")
    [row] = [row for row in rows if row["metric"] == metric]
    lowest, highest, average, deviation = TABLE[metric]

    assert (row["n"], row["unknown"]) == ("1175", "0")
    assert lowest <= float(row["min"]) <= float(row["max"]) <= highest
    assert float(row["mean"]) == pytest.approx(average, rel=0.10)
    assert float(row["std"]) == pytest.approx(deviation, rel=0.25)


def time(text):
    return datetime.fromisoformat(text)


class Truth:
    """The steps and the campaign's jobs in the truth files."""

    def __init__(self, folders):
        truths = [json.loads((folder / "truth.json").read_text()) for folder in folders]
        self._edges = {time(truths[0]["start"]), time(truths[-1]["end"])}
        self._steps = {step["key"]: step for truth in truths for step in truth["story"]}
        self._pilots = [
            job
            for truth in truths
            for job in truth["jobs"]
            if job["user"] == "hepprod" and job["ended"]
        ]

    def around(self, key):
        """Return the periods before a step and after it, until the next one."""
        times = sorted(self._edges | {time(step["at"]) for step in self._steps.values()})
        at = time(self._steps[key]["at"])
        return [period for period in pairwise(times) if at in period]

    def effect(self, key, metric):
        """Return the values of a metric before and after a step."""
        effects = self._steps[key]["effects"]
        [effect] = [effect for effect in effects if effect["metric"] == metric]
        return effect["before"], effect["after"]

    def typical(self, figure, start, end):
        """Return the median of a figure of the pilots that began in a period."""
        return median(figure(job) for job in self._pilots if start <= time(job["started"]) < end)


@pytest.fixture(scope="module")
def truth(folders):
    return Truth(folders)


@pytest.fixture
def daily(rows_of, truth):
    """Return the values of a trend by day before a step, and after it."""

    def run(key, trend, column="median", **query):
        return [
            [
                float(row[column])
                for row in rows_of(
                    f"/trends/{trend}/", *map(datetime.isoformat, period), step="day", **query
                )
                if row[column]
            ]
            for period in truth.around(key)
        ]

    return run


def duration_s(job):
    return (time(job["ended"]) - time(job["started"])).total_seconds()


def operations_per_node(job):
    return job["metadata_operations"] / job["node_count"]


def opens_per_close(job):
    return job["operations"]["open"] / job["operations"]["close"]


# The trend that shows an effect, and the same figure of the truth's jobs.
TRENDS = {
    "duration_s": ("duration_s", duration_s),
    "opens_per_node": ("metadata_operations_per_node", operations_per_node),
    "open_close_ratio": ("open_close_ratio", opens_per_close),
}


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        (step.key, effect.metric)
        for step in story.STEPS
        for effect in step.effects
        if effect.metric in TRENDS
    ],
)
def test_trends_show_the_size_of_each_step(daily, truth, key, metric):
    trend, figure = TRENDS[metric]

    before, after = map(median, daily(key, trend))

    medians = [truth.typical(figure, *period) for period in truth.around(key)]
    assert [before, after] == pytest.approx(medians, rel=0.05)
    planned = truth.effect(key, metric)
    # Operations other than opens and closes remain when directories move to memory.
    assert after / before == pytest.approx(planned[1] / planned[0], rel=0.15, abs=0.04)


@pytest.mark.parametrize("key", ["twenty-slots", "five-slots", "fifteen-slots"])
def test_slots_limit_the_pilots_that_run_concurrently(daily, truth, key):
    before, after = daily(key, "running-jobs", "jobs_peak")

    # Pilots with published times are added, one at a time.
    assert (max(before), max(after)) == pytest.approx(truth.effect(key, "slots"), abs=1)


def test_jobs_of_the_crisis_exceed_two_million_operations(daily):
    before, after = daily("crisis", "metadata_operations", "p90")

    assert max(before) < 500_000
    assert max(after) > 2_000_000


def test_set_up_time_decreases_on_the_day_the_software_moves(daily, truth):
    before, after = daily("software-on-nfs", "panda_setup_s", unit="panda")

    planned = truth.effect("software-on-nfs", "validation_s")
    assert before == pytest.approx([planned[0]] * len(before), rel=0.05)
    assert after == pytest.approx([planned[1]] * len(after), rel=0.05)
    assert median(before) > 30 * median(after)


def test_the_share_of_failures_increases_in_june(daily, truth):
    shares = daily("slow-june", "failed-share", "failed_share", unit="panda")

    assert list(map(median, shares)) == pytest.approx(
        truth.effect("slow-june", "failed_share"), rel=0.25
    )


@pytest.fixture
def panda_jobs(as_staff, truth):
    """Return the populations of PanDA jobs before a step, and after it."""

    def run(key):
        return [
            json_of(
                as_staff.get(
                    "/populations/",
                    {
                        "unit": "panda",
                        "format": "json",
                        "start": start.isoformat(),
                        "end": end.isoformat(),
                    },
                )
            )
            for start, end in truth.around(key)
        ]

    return run


def test_validation_takes_seconds_from_nfs(panda_jobs, truth):
    means = [
        row["mean"]
        for period in panda_jobs("software-on-nfs")
        for row in period["rows"]
        if row["metric"] == "panda_setup_s"
    ]

    assert means == pytest.approx(truth.effect("software-on-nfs", "validation_s"), rel=0.05)


def test_more_panda_jobs_fail_in_the_slow_june(panda_jobs, truth):
    shares = [period["populations"][0]["failed_share"] for period in panda_jobs("slow-june")]

    assert shares == pytest.approx(truth.effect("slow-june", "failed_share"), rel=0.25)
