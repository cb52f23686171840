"""A harmful job is told from a busy one, where the simulator's truth says which is which.

Logs of each seed go through the real collectors; what the incident page's twin says is held against
how long others truly waited because of each job. `make incidents` does 20 seeds and prints them.
"""

import json
import os

import pytest

from simulator import incident
from tests.web.reading import json_of

pytestmark = pytest.mark.long

SEEDS = range(1, int(os.environ.get("IOPORTAL_TEST_INCIDENTS", "3")) + 1)
AT_LEAST_TIMES = 5  # as much harm by the harmful job
AT_MOST_SHARE = 0.01  # of the true waiting that may be laid on the busy job
WITHIN = 0.25  # of the truth is what is laid on the harmful job


@pytest.fixture
def judged(tmp_path, register, ingest, as_staff):
    """Load a seed's logs; return the truth, and what the page says."""

    def run(seed):
        incident.write(tmp_path, seed=seed)
        truth = json.loads((tmp_path / "truth.json").read_text())
        register((tmp_path / "site.toml").read_text())
        ingest("sacct", tmp_path / "sacct.txt", cluster="rhea")
        for trace in (tmp_path / "rpctrace").iterdir():
            ingest("rpctrace", trace, server=trace.name.removesuffix(".log.zst"))
        query = {name: truth[name] for name in ("filesystem", "start", "end")}
        return truth, json_of(as_staff.get("/incidents/range/", {**query, "format": "json"}))

    return run


@pytest.mark.parametrize("seed", SEEDS)
def test_the_harmful_job_is_blamed_and_the_busy_one_is_not(judged, seed):
    truth, page = judged(seed)
    harmful, busy = (truth["jobs"][label] for label in ("harmful", "busy"))
    rows = {row["principal"].split()[0]: row for row in page["rows"]}
    impact = {label: rows[job["job"]]["impact_s"] for label, job in truth["jobs"].items()}
    print(  # noqa: T201  (the table of `make incidents`)
        f"\n{seed:4} {truth['shape']:12}"
        f"{harmful['rpcs']:9,} {harmful['others_waiting_s']:12,.1f} {impact['harmful']:12,.1f}"
        f"{busy['rpcs']:9,} {busy['others_waiting_s']:10,.2f} {impact['busy']:10,.2f}"
        f"  known {page['known_share']:.3f}",
        end=" ",
    )

    assert busy["rpcs"] >= harmful["rpcs"]
    assert page["rows"][0]["principal"].split()[0] == harmful["job"]
    assert impact["harmful"] >= AT_LEAST_TIMES * impact["busy"]
    assert impact["busy"] <= AT_MOST_SHARE * harmful["others_waiting_s"]
    assert impact["harmful"] == pytest.approx(harmful["others_waiting_s"], rel=WITHIN)
