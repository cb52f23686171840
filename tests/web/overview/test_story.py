"""The simulated centre's story, read off the pages: the table's week, and the size of each step.

Of the year only the days around the steps pass, and nobody else has jobs. The counters are those of
a site that reads them once a day and says so. What the pages say is held against the table as the
reports print it, and against the simulator's truth file.
"""

import io
import json
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

import pytest
from django.core.management import call_command

from ioportal.jobs import statistics
from ioportal.stages import drain
from simulator import demo, story
from simulator.clock import DAY_S, local
from simulator.plan import FULL_POLL_S, Plan
from tests import contents
from tests.web.reading import csv_of, json_of

pytestmark = pytest.mark.long

DAYS = [
    (local(2016, 10, 24), local(2016, 11, 2)),  # the table's week
    (local(2016, 11, 13), local(2016, 11, 18)),
    (local(2017, 4, 29), local(2017, 5, 3)),
    (local(2017, 6, 10), local(2017, 6, 15)),
    (local(2017, 7, 6, "09:30:00"), local(2017, 7, 7, "07:30:00")),
    (local(2017, 7, 16), local(2017, 7, 20)),
    (local(2017, 8, 15), local(2017, 8, 22)),
    (local(2017, 8, 27), local(2017, 8, 31)),
    (local(2017, 9, 9), local(2017, 9, 18)),
]
# Least, greatest, average and standard deviation of 1,175 jobs.
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
    """Return the folders with the raw files of each run of days."""
    out = tmp_path_factory.mktemp("story")
    for number, (start, end) in enumerate(DAYS):
        demo.write(Plan(start=start, end=end, rate=0, poll_s=DAY_S, trace=False), out / str(number))
    return sorted(out.iterdir())


@pytest.fixture(scope="module", autouse=True)
def _loaded(folders, django_db_setup, django_db_blocker):
    """Load, once for all tests, what the pages need of it."""

    def files(pattern):
        return [str(path) for folder in folders for path in sorted(folder.glob(pattern))]

    def run(*arguments):
        call_command(*arguments, stdout=io.StringIO())

    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr("django.conf.settings.POLL_GAP", timedelta(seconds=DAY_S + 60))
        run("register", str(folders[0] / "site.toml"))
        run("ingest", "pbs", *files("pbs/*"), "--cluster", "titan")
        for folder in folders:
            run("ingest", "job_stats", *enough_reads(folder))
        # Of the steps that show in PanDA's records alone.
        for folder in (folders[1], folders[3]):
            run("ingest", "panda", *map(str, folder.glob("panda/*")), "--cluster", "titan")
        # What was read and written is asked of the week alone.
        run("ingest", "job_stats", *map(str, sorted(folders[0].glob("job_stats/*-oss*/*"))))
        drain(statistics.refresh_statistics)
        yield
        call_command("flush", interactive=False, verbosity=0)
        contents.empty_hypertables()


def enough_reads(folder):
    """Return the fewest reads of the MDT that miss no entry of an idle job."""
    reads, last = [], 0
    for path in sorted(folder.glob("job_stats/atlas2-MDT0000/*")):
        read_at = path.stat().st_mtime
        in_full = story.FULL_DAYS[0] <= read_at < story.FULL_DAYS[1]
        if read_at - last >= (FULL_POLL_S if in_full else DAY_S):
            reads.append(str(path))
            last = read_at
    return reads


@pytest.fixture(autouse=True)
def _on_the_centres_clock(settings):
    settings.TIME_ZONE = "America/New_York"


@pytest.fixture
def ask(as_staff):
    """Return the rows of a page's CSV twin about the campaign's jobs in a period."""

    def run(page, start, end, **query):
        query = {"user": "hepprod", "format": "csv", "start": start, "end": end, **query}
        return csv_of(as_staff.get(page, query))

    return run


@pytest.mark.parametrize("metric", TABLE)
def test_the_week_is_that_of_the_table(ask, metric):
    rows = ask("/populations/", "2016-10-25", "2016-11-01")
    [row] = [row for row in rows if row["metric"] == metric]
    least, greatest, average, deviation = TABLE[metric]

    assert (row["n"], row["unknown"]) == ("1175", "0")
    assert least <= float(row["min"]) <= float(row["max"]) <= greatest
    assert float(row["mean"]) == pytest.approx(average, rel=0.10)
    assert float(row["std"]) == pytest.approx(deviation, rel=0.25)


def moment(text):
    return datetime.fromisoformat(text)


class Truth:
    """The steps and the campaign's jobs in the truth files."""

    def __init__(self, folders):
        truths = [json.loads((folder / "truth.json").read_text()) for folder in folders]
        self._edges = {moment(truths[0]["start"]), moment(truths[-1]["end"])}
        self._steps = {step["key"]: step for truth in truths for step in truth["story"]}
        self._pilots = [
            job
            for truth in truths
            for job in truth["jobs"]
            if job["user"] == "hepprod" and job["ended"]
        ]

    def around(self, key):
        """Return the periods before a step and after it, until the next one."""
        moments = sorted(self._edges | {moment(step["at"]) for step in self._steps.values()})
        at = moment(self._steps[key]["at"])
        return [period for period in pairwise(moments) if at in period]

    def effect(self, key, metric):
        """Return what a step did to a metric, before and after."""
        effects = self._steps[key]["effects"]
        [effect] = [effect for effect in effects if effect["metric"] == metric]
        return effect["before"], effect["after"]

    def typical(self, figure, start, end):
        """Return the median of a figure of the pilots that began in a period."""
        return median(figure(job) for job in self._pilots if start <= moment(job["started"]) < end)


@pytest.fixture(scope="module")
def truth(folders):
    return Truth(folders)


@pytest.fixture
def seen(ask, truth):
    """Return the values that a trend shows of days before a step and after it."""

    def run(key, trend, column="median", **query):
        return [
            [
                float(row[column])
                for row in ask(
                    f"/trends/{trend}/", *map(datetime.isoformat, period), step="day", **query
                )
                if row[column]
            ]
            for period in truth.around(key)
        ]

    return run


def duration_s(job):
    return (moment(job["ended"]) - moment(job["started"])).total_seconds()


def operations_per_node(job):
    return job["metadata_operations"] / job["node_count"]


def opens_per_close(job):
    return job["operations"]["open"] / job["operations"]["close"]


# The trend that shows an effect, and the same figure of the truth's jobs.
SHOWN = {
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
        if effect.metric in SHOWN
    ],
)
def test_a_step_is_as_large_in_the_trends_as_in_truth(seen, truth, key, metric):
    trend, figure = SHOWN[metric]

    before, after = map(median, seen(key, trend))

    done = [truth.typical(figure, *period) for period in truth.around(key)]
    assert [before, after] == pytest.approx(done, rel=0.05)
    meant = truth.effect(key, metric)
    # What is not opened and closed, such as look-ups, stays where directories move to memory.
    assert after / before == pytest.approx(meant[1] / meant[0], rel=0.15, abs=0.04)


@pytest.mark.parametrize("key", ["twenty-slots", "five-slots", "fifteen-slots"])
def test_slots_are_the_most_pilots_that_run_at_once(seen, truth, key):
    before, after = seen(key, "running-jobs", "jobs_peak")

    # Pilots whose times the reports tell start besides, one at a time.
    assert (max(before), max(after)) == pytest.approx(truth.effect(key, "slots"), abs=1)


def test_jobs_of_the_crisis_exceed_two_million_operations(seen):
    before, after = seen("crisis", "metadata_operations", "p90")

    assert max(before) < 500_000
    assert max(after) > 2_000_000


def test_set_up_time_decreases_on_the_day_the_software_moves(seen, truth):
    before, after = seen("software-on-nfs", "panda_setup_s", unit="panda")

    meant = truth.effect("software-on-nfs", "validation_s")
    assert before == pytest.approx([meant[0]] * len(before), rel=0.05)
    assert after == pytest.approx([meant[1]] * len(after), rel=0.05)
    assert median(before) > 30 * median(after)


def test_the_trend_of_failures_rises_in_june(seen, truth):
    shares = seen("slow-june", "failed-share", "failed_share", unit="panda")

    assert list(map(median, shares)) == pytest.approx(
        truth.effect("slow-june", "failed_share"), rel=0.25
    )


@pytest.fixture
def panda_jobs(as_staff, truth):
    """Return what the population of PanDA jobs tells before a step and after it."""

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
