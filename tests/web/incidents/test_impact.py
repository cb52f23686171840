"""Impact analysis separates harmful jobs from busy ones, as labelled by the simulator.

The logs of each seed go through the real collectors. The export of the impact page is compared with
the true wait that each job caused. `make incidents` runs 20 seeds and prints a table.
"""

import json
import os

import pytest

from simulator import incident
from tests.web.reading import json_of

pytestmark = pytest.mark.long

SEEDS = range(1, int(os.environ.get("IOPORTAL_TEST_INCIDENTS", "3")) + 1)
MIN_RATIO = 5  # impact of the harmful job over impact of the busy job
MAX_SHARE = 0.01  # of the true wait attributed to the busy job
TOLERANCE = 0.25  # of the wait attributed to the harmful job


@pytest.fixture
def analysed(tmp_path, register, ingest, as_staff):
    """Load the logs of a seed; return the truth and the export of the page."""

    def run(seed):
        incident.write(tmp_path, seed=seed)
        truth = json.loads((tmp_path / "truth.json").read_text())
        register((tmp_path / "site.toml").read_text())
        ingest("sacct", tmp_path / "sacct.txt", cluster="rhea")
        for trace in (tmp_path / "rpctrace").iterdir():
            ingest("rpctrace", trace, server=trace.name.removesuffix(".log.zst"))
        query = {name: truth[name] for name in ("filesystem", "start", "end")}
        return truth, json_of(as_staff.get("/incidents/impact/", {**query, "format": "json"}))

    return run


@pytest.mark.parametrize("seed", SEEDS)
def test_impact_is_attributed_to_the_harmful_job_and_not_to_the_busy_job(analysed, seed):
    truth, page = analysed(seed)
    harmful, busy = (truth["jobs"][label] for label in ("harmful", "busy"))
    rows = {row["principal"].split()[0]: row for row in page["rows"]}
    impact = {label: rows[job["job"]]["impact_s"] for label, job in truth["jobs"].items()}
    print(  # noqa: T201  (the table of `make incidents`)
        f"\n{seed:4} {truth['shape']:12}"
        f"{harmful['rpcs']:9,} {harmful['others_waiting_s']:12,.1f} {impact['harmful']:12,.1f}"
        f"{busy['rpcs']:9,} {busy['others_waiting_s']:10,.2f} {impact['busy']:10,.2f}"
        f"  known {page['baseline_share']:.3f}",
        end=" ",
    )

    assert busy["rpcs"] >= harmful["rpcs"]
    assert page["rows"][0]["principal"].split()[0] == harmful["job"]
    assert impact["harmful"] >= MIN_RATIO * impact["busy"]
    assert impact["busy"] <= MAX_SHARE * harmful["others_waiting_s"]
    assert impact["harmful"] == pytest.approx(harmful["others_waiting_s"], rel=TOLERANCE)
