"""Whatever stands in an address, the answer is a page, a refusal or 'not found'."""

from itertools import product

import hypothesis
import pytest
from django.urls import resolve
from hypothesis import example, given
from hypothesis import strategies as st

from ioportal.activity.models import Incident
from ioportal.flags.models import BackTest, Flag
from ioportal.site.models import Server
from ioportal.studies.filters import JobFilter
from ioportal.studies.models import Population
from ioportal.studies.panda_filters import PandaFilter
from ioportal.web.flags.inbox import FlagFilter
from ioportal.web.ingest.segments import SegmentFilter
from ioportal.web.urls import urlpatterns
from tests.logs import at
from tests.properties import examples

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
    # and what means something to some parameter
    *("2017-07-05T11:00:00Z", "2017-07-05T13:00:00+02:00", "2017-07-06", "2017-07-05"),
    *("0", "1", "40000", "alice", "anvil", "lake", "mds1", "others", "panda", "csv", "json"),
    *("log", "linear", "shares", "core", "hour", "week", "24", "1h", "user", "opens", "all", "any"),
    *("good", "completed", "/jobs/?start=2017-07-06&end=2017-07-05", "populations/mine/"),
]
JOB_FILTERS = list(JobFilter.base_filters)
PANDA_FILTERS = list(PandaFilter.base_filters)
FILTERS = sorted({*JOB_FILTERS, *PANDA_FILTERS, "unit"})
RANGE = ["start", "end", "format"]
POPULATION = [*FILTERS, "beside", "scale", "bars", "named", "format"]
TRENDS = [*FILTERS, "step", "metric", "hours", "scale", "format"]
LIST = ["sort", "columns", "page", "format"]
PAGES = {  # and what each of them reads of its address
    "/": ["hours"],
    "/load/": ["hours", "format"],
    "/search/": ["q", "format"],
    "/styleguide/": [],
    "/overview/": ["last", "by", "start", "end"],
    "/overview/operations/": ["last", "by", *RANGE],
    "/overview/rpcs/": ["last", "by", *RANGE],
    "/incidents/": ["page"],
    "/incidents/range/": ["filesystem", *RANGE],
    "/incidents/{incident}/": ["format"],
    "/flags/": [*FlagFilter.base_filters, "state", "page", "format"],
    "/flags/{flag}/": ["format"],
    "/flags/{flag}/history/": ["format"],
    "/flags/{flag}/peers/": ["format"],
    "/jobs/": [*JOB_FILTERS, *LIST],
    "/jobs/{job}/": ["start", "end", "launch", "format"],
    "/jobs/{job}/rpcs/": ["launch", *RANGE],
    "/jobs/{job}/peers/": ["format"],
    "/jobs/{job}/panda/": ["format"],
    "/jobs/{job}/timelines/rpcs/": RANGE,
    "/jobs/anvil/1/": ["array_index"],
    "/panda/": [*PANDA_FILTERS, *LIST],
    "/panda/anvil/1/": ["format"],
    "/populations/": POPULATION,
    "/populations/further/": POPULATION,
    "/populations/histograms/opens/": POPULATION,
    "/populations/mine/": ["beside", "scale", "bars", "format"],
    "/trends/": TRENDS,
    "/trends/opens/": TRENDS,
    "/users/": ["user", "project", *LIST, "start", "end"],
    "/users/alice/": [*RANGE, "step"],
    "/projects/": ["user", *LIST],
    "/projects/PHY12/": RANGE,
    "/rules/": [],
    "/rules/metadata-operations/": ["from", "like"],
    "/rules/metadata-operations/back-tests/{test}/": ["page", "format"],
    "/servers/": ["format"],
    "/servers/mds1/": ["service", *RANGE],
    "/servers/mds1/senders/": ["service", *RANGE],
    "/servers/mds1/charts/rpcs/": ["service", *RANGE],
    "/ingest/": [*SegmentFilter.base_filters, "page", "format"],
    "/ingest/segments/{segment}/": ["reason", "page", "format"],
    "/ingest/coverage/": RANGE,
    "/ingest/health/": ["format"],
    "/ingest/storage/": ["format"],
    "/ingest/nids/": ["q", "page", "format"],
    "/ingest/pending/": ["q", "page", "format"],
    "/ingest/tables/": ["cluster", "format"],
    "/palette-x.css": [],
}
POSTED_TO = {"keep_incident", "withdraw_thresholds", "stop_back_test"}


@pytest.fixture
def names(heavy_job, alice):
    """What the addresses of the pages name."""
    facts = {"start": at("12:00"), "end": at("13:00")}
    Population.objects.create(slug="mine", name="Mine", query="user=alice", owner=alice)
    server = Server.objects.get(name="mds1")
    flag = Flag.objects.create(
        rule="metadata-operations",
        rule_version=1,
        subject_kind="job",
        subject=str(heavy_job.pk),
        job=heavy_job,
        owner="alice",
        severity=Flag.Severity.WARNING,
        since=at("12:00"),
        until=at("13:00"),
        value=90_000,
        numbers={"metadata_operations": 90_000},
        thresholds={"metadata_operations": 50_000},
        advice="Keep software off Lustre.",
    )
    test = BackTest.objects.create(rule=flag.rule, thresholds={}, requested_by="sam", **facts)
    return {
        "job": heavy_job.pk,
        "segment": heavy_job.records.get().segment_id,
        "incident": Incident.objects.create(title="Slow", server=server, **facts).pk,
        "flag": flag.pk,
        "test": test.pk,
    }


def test_every_route_is_among_these_pages():
    routes = {pattern.name for pattern in urlpatterns} - POSTED_TO
    paths = [
        path.format_map(dict.fromkeys(["job", "segment", "incident", "flag", "test"], 1))
        for path in PAGES
    ]

    assert {resolve(path).url_name for path in paths} | {"user", "project"} == routes


def test_no_value_of_a_parameter_breaks_a_page(as_staff, names, settings):
    settings.TIME_ZONE = "America/New_York"  # west of UTC, and with daylight saving
    tried = set()

    for path, parameters in PAGES.items():
        # What pages share they read by the same code, but for ranges.
        for parameter, value in product({*parameters} - tried, VALUES):
            assert_answers(as_staff, path.format_map(names), {parameter: value})
        tried |= {*parameters} - {"start", "end"}


@pytest.mark.hypothesis
def test_no_combination_of_parameters_breaks_a_page(client, names, sam, alice):
    values = st.lists(st.sampled_from([*VALUES, *MORE_VALUES]), min_size=1, max_size=2)
    addresses = st.sampled_from(list(PAGES)).flatmap(
        lambda path: st.tuples(
            st.just(path.format_map(names)),
            st.dictionaries(st.sampled_from(PAGES[path]), values, max_size=4)
            if PAGES[path]
            else st.just({}),
        )
    )

    @hypothesis.settings(max_examples=examples(100), derandomize=True, database=None)
    @given(addresses, st.sampled_from([sam, alice]))
    @example(
        ("/populations/", {"beside": "others", "start": "2017-07-06", "end": "2017-07-05"}), alice
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
