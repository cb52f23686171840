"""A job whose accounting came after its traces says so on its page."""

import pytest

from ioportal.jobs.models import Job
from tests.logs import Run, rpc, sacct
from tests.web.reading import words_of

LATE = "The accounting of this job came late"


@pytest.fixture
def page(site, logs, ingest, as_staff):
    """Ingest texts in an order, and open the page of job 77."""
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


def test_what_waited_for_it_is_told(page):
    words = page("rpctrace", "sacct")

    assert LATE in words
    assert "What 1 text loaded since" in words


def test_a_job_that_was_known_in_time_says_nothing(page):
    assert LATE not in page("sacct", "rpctrace")
