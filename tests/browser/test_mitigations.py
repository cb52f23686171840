"""Staff log mitigations, see their marks on the charts of jobs, and read their effects."""

import re
from datetime import timedelta

import numpy as np
import pytest
from playwright.sync_api import expect

from ioportal.jobs import statistics
from ioportal.telemetry.stage_runs import drain
from tests import loading
from tests.browser.charts import key
from tests.logs import Run, at, job_stats, sacct

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]
DAYS, A_DAY = 14, timedelta(days=1)
SEED = 4  # six days can seem correlated by chance, and then count as fewer: these do not
RUN = timedelta(minutes=10)
FELL = re.compile(r"Opens fell [\d.]+\u00d7 \(([\d.]+) to ([\d.]+)\)")


@pytest.fixture(scope="module")
def campaign(heavy_job, tmp_path_factory):
    """Ingest the logs of four jobs of bob a day, whose opens fall to a quarter on 13 July."""
    folder = tmp_path_factory.mktemp("campaign")
    rng = np.random.default_rng(SEED)
    runs, reads = [], []
    for day in range(DAYS):
        start = at("36:00") + day * A_DAY
        level = 4_000 if day < DAYS / 2 else 1_000
        entries = {"login1.bash": {"open": 1}}
        for number, opens in enumerate(level * rng.lognormal(0, 0.1, 4)):
            run = Run(f"{40_000 + 10 * day + number}", start, start + RUN, f"n{3 + number}",
                      submit=start - RUN, user="bob")  # fmt: skip
            runs.append(run)
            entries[run.batch_id] = {"open": round(opens)}
        for read_at, shown in ((start, {"login1.bash": {"open": 1}}), (start + RUN, entries)):
            text = job_stats("lake-MDT0000", shown, snapshot=read_at)
            reads.append(loading.write_log(folder, f"{read_at:%d%H%M}", text, read_at=read_at))
    accounting = loading.write_log(folder, "sacct", sacct(*runs))
    loading.ingest("sacct", accounting, cluster="anvil")
    loading.ingest("job_stats", *reads)
    drain(statistics.refresh_statistics)


def log(page, title, start, jobs):
    """Log a mitigation from home, and correct its expectation."""
    page.get_by_role("link", name="Analyse").click()
    page.get_by_role("link", name="Mitigations").click()
    page.get_by_role("main").get_by_role("link", name="Log a mitigation").first.click()
    page.get_by_label("Title").fill(title)
    page.get_by_label("Kind").select_option("code fix")
    page.get_by_label("Start").fill(start)
    page.get_by_label("Jobs").fill(jobs)
    page.get_by_label("Metric").select_option("Opens")
    page.get_by_label("Expected change").select_option("falls")
    page.get_by_label("Times").fill("4")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile(r"/mitigations/\d+/$"))


def test_a_logged_mitigation_is_marked_on_the_jobs_that_it_concerns(visit, heavy_job):
    page = visit("/")
    log(page, "Fewer <b>opens</b>", "2017-07-05 12:30", "user=alice")

    expect(page.get_by_role("heading", level=1)).to_have_text("Fewer <b>opens</b>")
    expect(page.get_by_text("Opens fall 4\N{MULTIPLICATION SIGN}")).to_be_visible()
    page.goto(f"{page.url.partition('/mitigations/')[0]}/jobs/{heavy_job.pk}/")
    expect(key(page, "opens-closes")).to_contain_text("Fewer <b>opens</b>")


def test_a_logged_mitigation_has_its_true_effect_one_click_away(visit, campaign):
    page = visit("/")
    log(page, "Search path", "2017-07-13", "user=bob")
    page.get_by_role("link", name="Compare before and after").click()

    expect(page).to_have_url(re.compile(r"/compare/\?arm="))
    expect(page.get_by_role("status").get_by_role("link", name="Search path")).to_be_visible()
    conclusion = page.get_by_role("region", name="Conclusion")
    expect(conclusion).to_contain_text(FELL)
    low, high = map(float, FELL.search(conclusion.inner_text()).groups())
    assert 3.5 < low < 4 < high < 5
    expect(conclusion).to_contain_text("24 jobs on 6 days of 1 user")
    expect(key(page, "days")).to_contain_text("Search path")
