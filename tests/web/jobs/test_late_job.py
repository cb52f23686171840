"""The page of a job whose accounting arrived after its traces."""

import pytest

from ioportal.jobs.models import Job
from tests.logs import Run, rpc, sacct
from tests.web.reading import words_of

LATE = "Accounting of this job arrived late"


@pytest.fixture
def page(site, logs, ingest, as_staff):
    """Ingest files in an order, and open the page of job 77."""
    texts = {
        "sacct": (sacct(Run("77", nodes="n1")), {"cluster": "anvil"}),
        "rpctrace": (rpc("12:10", "1@gni"), {"server": "mds1"}),
    }

    def fetch(*order):
        for form in order:
            text, options = texts[form]
            ingest(form, logs(form, text), **options)
        return words_of(as_staff.get(f"/jobs/{Job.objects.get(batch_id='77').pk}/"))

    return fetch


def test_data_before_late_accounting_is_reported(page):
    words = page("rpctrace", "sacct")

    assert LATE in words
    assert "Data of 1 file ingested since" in words


def test_timely_accounting_is_not_reported(page):
    assert LATE not in page("sacct", "rpctrace")
