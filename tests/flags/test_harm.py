"""Severity by harm: many operations are a notice while the waiting of others is known to be low."""

import pytest

from ioportal.flags.models import Case, Flag
from tests.logs import Run, rpc

pytestmark = pytest.mark.usefixtures("module_site")
TOO_MANY = ("metadata-operations", "77")


@pytest.fixture
def flag(logs, ingest, jobs, read, evaluate):
    """Return the flag of a job with 3 million stats, with a trace from a time of day on."""

    def run(traced_from):
        jobs(Run("77", nodes="n1", end=None))
        if traced_from:
            trace = "\n".join(map(rpc, (traced_from, "12:20")))
            ingest("rpctrace", logs("trace", trace), server="mds1")
        read("11:59", None)
        read("12:19", 3_000_000)
        return evaluate()[TOO_MANY]

    return run


def test_a_harmless_job_gets_a_notice_which_needs_no_triage(flag):
    assert flag("10:00").severity == Flag.Severity.NOTICE
    assert not Case.objects.to_triage().exists()


@pytest.mark.parametrize("traced_from", [None, "11:50"], ids=["no trace", "short trace"])
def test_unknown_harm_is_a_warning(flag, traced_from):
    assert flag(traced_from).severity == Flag.Severity.WARNING
    assert Case.objects.to_triage().filter(rule=TOO_MANY[0]).exists()
