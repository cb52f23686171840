"""The what-if page: sliders change the predictions and the address."""

import re

import pytest
from playwright.sync_api import expect

from ioportal.experiments.experiments import RunRecord, named_experiment, record_runs

MIB = 2**20


@pytest.fixture(scope="module")
def runs(heavy_job):
    """Runs with exact times of 2 ms a read and 50 MiB/s."""
    reads = ((50_000, 500), (10_000, 1_000), (100, 2_000))
    return record_runs(
        named_experiment("Sliders"),
        [
            RunRecord(
                f"run {number}",
                metrics={
                    "read_operations": operations,
                    "read_bytes": mib * MIB,
                    "read_s": 0.002 * operations + mib / 50,
                },
            )
            for number, (operations, mib) in enumerate(reads)
        ],
    )


@pytest.mark.long
def test_sliders_change_the_predictions_and_the_address(visit, runs):
    page = visit("/model/?experiment=sliders")
    latency = page.get_by_label("Latency per operation (ms)", exact=True)
    expect(latency).to_have_value("2")
    expect(page.locator("#fit")).to_be_visible()

    slider = page.get_by_label("Latency per operation, slider")
    slider.focus()
    slider.press("End")

    expect(latency).to_have_value("1000")
    expect(page).to_have_url(re.compile("latency_ms=1000"))
    expect(page.get_by_text("Use the fitted values")).to_be_visible()
    page.get_by_text("Use the fitted values").click()
    expect(latency).to_have_value("2")


def test_the_form_works_without_javascript(visit, runs):
    page = visit(f"/model/?run={runs[0].pk}", java_script_enabled=False)
    page.get_by_label("Bandwidth (MiB/s)", exact=True).fill("100")
    page.get_by_role("button", name="Predict").click()

    expect(page).to_have_url(re.compile(f"run={runs[0].pk}&.*bandwidth_mib_s=100"))
    expect(page.get_by_role("heading", name="Predicted time in storage")).to_be_visible()
