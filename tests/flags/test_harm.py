"""Severity by harm: many operations are a notice where others hardly waited, as far as is known."""

import polars as pl
import pytest

from ioportal.flags.harm import with_harm
from ioportal.flags.models import Case, Flag
from tests.logs import Run, at, rpc

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
def test_a_large_load_of_unknown_harm_is_a_warning(flag, traced_from):
    assert flag(traced_from).severity == Flag.Severity.WARNING
    assert Case.objects.to_triage().filter(rule=TOO_MANY[0]).exists()


@pytest.mark.parametrize(
    ("operations", "harm_s"),
    [(None, 0), (299_000, 0), (300_000, None)],  # 20 % of the capacity is 1,000 a second
)
def test_counters_bound_unknown_harm(operations, harm_s):
    subjects = pl.DataFrame(
        {
            "filesystem": [1],
            "until": [at("12:00")],
            "capacity_per_s": [5_000.0],
            "peak_operations": [operations],
            "impact_s": [None],
            "impact_share": [None],
            "impact_is_estimated": [None],
        },
        schema_overrides={"until": pl.Datetime("us", "UTC"), "peak_operations": pl.Float64},
    )

    assert with_harm(subjects)["harm_s"].to_list() == [harm_s]


@pytest.mark.parametrize(
    ("share", "is_estimated", "harm_s"),
    [
        pytest.param(0.17, 0, 0, id="a bystander in the queue of others"),
        pytest.param(0.2, 0, 76, id="measured"),
        pytest.param(0.2, 1, 38, id="estimated: within a factor of two"),
    ],
)
def test_harm_is_what_others_waited_at_least(share, is_estimated, harm_s):
    subjects = pl.DataFrame(
        {
            "filesystem": [1],
            "until": [at("12:00")],
            "impact_s": [76.0],
            "impact_share": [share],
            "impact_is_estimated": [is_estimated],
        },
        schema_overrides={"until": pl.Datetime("us", "UTC")},
    )

    assert with_harm(subjects)["harm_s"].to_list() == [harm_s]
