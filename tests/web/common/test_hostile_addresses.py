"""Any URL gets a page, an error message, or 404."""

from itertools import product

import hypothesis
import pytest
from django.urls import resolve
from hypothesis import example, given
from hypothesis import strategies as st

from ioportal.jobs.job_filters import JobFilter
from ioportal.jobs.panda_filters import PandaFilter
from ioportal.web.cases.inbox import CaseFilter
from ioportal.web.ingest.segments import SegmentFilter
from ioportal.web.mails.mail_list import MailFilter
from tests.properties import examples
from tests.web.routing import routes

pytestmark = pytest.mark.long


VALUES = [
    "",
    "\x00",
    "-1",
    "9" * 400,
    "NaN",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-12:00",
    "\U0001f4a5" * 300,
]
MORE_VALUES = [
    "1e999",
    "2017-07-05T12:00:00",
    "'; DROP TABLE jobs_job; --",
    "<script>alert(1)</script>",
    "-" + "a" * 5_000,
    # meaningful for some parameters
    *("2017-07-05T11:00:00Z", "2017-07-05T13:00:00+02:00", "2017-07-06", "2017-07-05"),
    *("0", "1", "40000", "alice", "anvil", "lake", "mds1", "others", "panda", "csv", "json"),
    *("log", "linear", "shares", "core", "hour", "week", "24", "1h", "user", "opens", "all", "any"),
    *("good", "completed", "/jobs/?start=2017-07-06&end=2017-07-05", "populations/mine/"),
]
JOB_FILTERS = list(JobFilter.base_filters)
PANDA_FILTERS = list(PandaFilter.base_filters)
FILTERS = sorted({*JOB_FILTERS, *PANDA_FILTERS, "unit"})
RANGE = ["start", "end", "format"]
POPULATION = [*FILTERS, "compare", "scale", "bars", "saved", "format"]
TRENDS = [*FILTERS, "step", "metric", "hours", "scale", "format"]
LOAD_RAMP = [*FILTERS, "step", "load", "format"]
MODEL = [
    *("run", "job", "experiment", "operations", "mib", "latency_ms", "bandwidth_mib_s"),
    *("claimed_s", "format"),
]
COMPARISON = ["arm", "control", "covariate", "margin", "metric", "mitigation", "format"]
LIST = ["sort", "columns", "page", "format"]
PAGES = {  # and their parameters
    "/": ["hours"],
    "/load/": ["hours", "format"],
    "/observed/": ["format"],
    "/tour/": [],
    "/tour/mailbox/": [],
    "/tour/mailbox/x/": [],
    "/tour/mailbox/x/html/": [],
    "/me/": [],
    "/tokens/": ["page"],
    "/search/": ["q", "format"],
    "/styleguide/": [],
    "/mails/": [*MailFilter.base_filters, "page", "format"],
    "/mails/{mail}/": [],
    "/mails/{mail}/html/": [],
    "/mails/preview/": ["case", "flag"],
    "/mails/preview/html/": ["case", "flag"],
    "/answers/{answer}/fixed/": [],
    "/mitigations/": ["kind", "jobs", "start", "end", "page", "format"],
    "/mitigations/log/": [
        *("case", "event", "title", "kind", "started_at", "scope", "metric", "factor", "source")
    ],
    "/mitigations/what-worked/": ["format"],
    "/mitigations/{mitigation}/": ["format"],
    "/mitigations/{mitigation}/edit/": [],
    "/experiments/": ["page", "format"],
    "/experiments/upload/": ["experiment"],
    "/experiments/uploads/{upload}/": [],
    "/experiments/shared/{key}/": [],
    "/experiments/{experiment}/": ["plausible", "samples", "format"],
    "/experiments/{experiment}/edit/": [],
    "/experiments/{experiment}/storage-areas/": [],
    "/experiments/{experiment}/exports/runs/list/": ["format"],
    "/experiments/{experiment}/runs/{run}/": ["format"],
    "/experiments/{experiment}/runs/{run}/edit/": [],
    "/experiments/{experiment}/runs/{run}/attachments/{attachment}/": [],
    "/overview/": ["last", "by", "start", "end"],
    "/overview/operations/": ["last", "by", *RANGE],
    "/overview/rpcs/": ["last", "by", *RANGE],
    "/incidents/": ["page"],
    "/incidents/impact/": ["filesystem", "last", *RANGE],
    "/incidents/impact/mds1/times/": ["filesystem", "last", *RANGE],
    "/incidents/impact/mds1/queue/": ["at", "kind", "key", "format", *RANGE],
    "/incidents/{incident}/": ["format"],
    "/compare/": COMPARISON,
    "/compare/charts/boxes/": COMPARISON,
    "/compare/jobs/": ["job", "add", "align", "per", "scale"],
    "/compare/jobs/opens/": ["job", "per", "scale", "format"],
    "/compare/presets/date/": ["arm", "at", "days", "name", "values"],
    "/cases/": [*CaseFilter.base_filters, "state", "page", "format"],
    "/cases/{case}/": ["page", "format"],
    "/cases/{case}/flags/": ["format"],
    "/cases/{case}/weeks/": ["format"],
    "/flags/{flag}/": ["format"],
    "/flags/{flag}/history/": ["format"],
    "/flags/{flag}/similar-jobs/": ["format"],
    "/jobs/": [*JOB_FILTERS, *LIST],
    "/jobs/{job}/": ["start", "end", "launch", "format"],
    "/jobs/{job}/rpcs/": ["launch", *RANGE],
    "/jobs/{job}/similar-jobs/": ["format"],
    "/jobs/{job}/panda/": ["format"],
    "/jobs/{job}/timelines/rpcs/": RANGE,
    "/jobs/anvil/1/": ["array_index"],
    "/panda/": [*PANDA_FILTERS, *LIST],
    "/panda/anvil/1/": ["format"],
    "/populations/": POPULATION,
    "/populations/other-metrics/": POPULATION,
    "/populations/histograms/opens/": POPULATION,
    "/populations/mine/": ["compare", "scale", "bars", "last", *RANGE],
    "/load-ramp/": LOAD_RAMP,
    "/load-ramp/bins/": LOAD_RAMP,
    "/load-ramp/over-time/": LOAD_RAMP,
    "/model/": [*JOB_FILTERS, *MODEL],
    "/trends/": TRENDS,
    "/trends/change-points/": TRENDS,
    "/trends/opens/": TRENDS,
    "/users/": ["user", "project", *LIST, "start", "end"],
    "/users/alice/": [*RANGE, "step"],
    "/projects/": ["user", *LIST],
    "/projects/PHY12/": RANGE,
    "/now/": ["server"],
    "/ranking/": [*JOB_FILTERS, "of", "by", "per", "columns", "min_node_hours", "page", "format"],
    "/rules/": [],
    "/rules/metadata-operations/": ["from", "like"],
    "/rules/metadata-operations/back-tests/{test}/": ["page", "format"],
    "/servers/": ["format"],
    "/servers/mds1/": ["service", *RANGE],
    "/servers/mds1/capacity/": ["method", *RANGE],
    "/servers/mds1/capacity/charts/curve/": ["method", *RANGE],
    "/servers/mds1/clients/": ["service", *RANGE],
    "/servers/mds1/charts/rpcs/": ["service", *RANGE],
    "/ingest/": [*SegmentFilter.base_filters, "page", "format"],
    "/ingest/files/{segment}/": ["reason", "page", "format"],
    "/ingest/coverage/": RANGE,
    "/ingest/coverage/unexplained/": RANGE,
    "/ingest/health/": ["format"],
    "/ingest/storage/": ["format"],
    "/ingest/streams/": ["page"],
    "/ingest/streams/{stream}/": [],
    "/ingest/nids/": ["q", "page", "format"],
    "/ingest/pending/": ["q", "page", "format"],
    "/ingest/tables/": ["cluster", "format"],
    "/palette-x.css": [],
}
POSTED_TO = {
    *("save_incident", "withdraw_thresholds", "stop_back_test"),
    *("case_answer", "case_draft"),
    *("upload_part", "upload_complete", "attach"),
}


def test_every_page_is_listed(page_names):
    listed = {resolve(path.format_map(page_names)).route for path in PAGES}
    without_parameters = {"login/", "logout/"}
    without_parameters |= {route for route, _ in routes() if route.startswith(("admin/", "api/"))}
    without_parameters |= {route for route, name in routes() if name in POSTED_TO}

    assert listed == {route for route, _ in routes()} - without_parameters


def test_no_value_of_a_parameter_breaks_a_page(as_staff, page_names, settings):
    settings.TIME_ZONE = "America/New_York"  # west of UTC, and with daylight saving
    tried = set()

    for path, parameters in PAGES.items():
        # Parameters are shared code, except ranges.
        for parameter, value in product({*parameters} - tried, VALUES):
            assert_answers(as_staff, path.format_map(page_names), {parameter: value})
        tried |= {*parameters} - {"start", "end"}


@pytest.mark.hypothesis
def test_no_combination_of_parameters_breaks_a_page(client, page_names, sam, alice):
    values = st.lists(st.sampled_from([*VALUES, *MORE_VALUES]), min_size=1, max_size=2)
    addresses = st.sampled_from(list(PAGES)).flatmap(
        lambda path: st.tuples(
            st.just(path.format_map(page_names)),
            st.dictionaries(st.sampled_from(PAGES[path]), values, max_size=4)
            if PAGES[path]
            else st.just({}),
        )
    )

    @hypothesis.settings(max_examples=examples(100), derandomize=True, database=None)
    @given(addresses, st.sampled_from([sam, alice]))
    @example(
        ("/populations/", {"compare": "others", "start": "2017-07-06", "end": "2017-07-05"}), alice
    )
    def visit(address, user):
        client.force_login(user)
        assert_answers(client, *address)

    visit()


def assert_answers(client, path, query):
    answer = client.get(path, query)

    assert answer.status_code in {200, 302, 400, 403, 404}, (path, query)
    if answer.streaming:
        assert list(answer.streaming_content)


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/anvil/%00/",
        "/jobs/99999999999999999999/",
        "/jobs/x/",
        "/trends/nonsense/",
        "/users/%00/",
        "/projects/%0a/",
    ],
)
def test_no_path_breaks_a_page(as_staff, path):
    assert as_staff.get(path).status_code == 404
