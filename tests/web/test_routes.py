"""Who may open which address: every route and method by every kind of visitor."""

import re
from enum import Enum

import pytest
from django.urls import resolve

from ioportal.api.models import Token
from tests import loading
from tests.web.routing import addresses, routes

SERVED, LOG_IN, REFUSED, MISSING = "served", "log in", "refused", "missing"

# alice owns the data, bob is in her project, charlie is not, sam is staff.
PEOPLE = ("anonymous", "alice", "bob", "charlie", "sam")
TOKENS = ("ingest token", "metrics token", "bounces token", "read token", "write token")
NO_SESSION = (LOG_IN,) * len(TOKENS)  # pages do not accept tokens


class Access(Enum):
    """Outcomes for `PEOPLE` and `TOKENS`."""

    PUBLIC = (SERVED,) * 10
    USERS = (LOG_IN, SERVED, SERVED, SERVED, SERVED, *NO_SESSION)
    PROJECT = (LOG_IN, SERVED, SERVED, MISSING, SERVED, *NO_SESSION)
    OWNER = (LOG_IN, SERVED, MISSING, MISSING, SERVED, *NO_SESSION)
    OWNER_ALONE = (LOG_IN, SERVED, MISSING, MISSING, MISSING, *NO_SESSION)
    STAFF = (LOG_IN, REFUSED, REFUSED, REFUSED, SERVED, *NO_SESSION)
    STAFF_VIEW = (LOG_IN, MISSING, MISSING, MISSING, SERVED, *NO_SESSION)
    STAFF_ACTION = (LOG_IN, REFUSED, REFUSED, MISSING, SERVED, *NO_SESSION)
    OWNERS_ACTION = (LOG_IN, SERVED, REFUSED, MISSING, REFUSED, *NO_SESSION)
    OWNERS_STAFF_ACTION = (LOG_IN, REFUSED, MISSING, MISSING, SERVED, *NO_SESSION)
    ABSENT = (LOG_IN, REFUSED, REFUSED, REFUSED, MISSING, *NO_SESSION)  # for staff
    INGEST = (*[REFUSED] * 5, SERVED, *[REFUSED] * 4)
    METRICS = (*[REFUSED] * 6, SERVED, *[REFUSED] * 3)
    BOUNCES = (*[REFUSED] * 7, SERVED, *[REFUSED] * 2)
    READERS = (*[REFUSED] * 8, SERVED, SERVED)
    WRITERS = (*[REFUSED] * 9, SERVED)
    NOT_FOUND = (LOG_IN, *[MISSING] * 4, *NO_SESSION)
    NOTHING = (MISSING,) * 10


A = Access
# A new route needs its row: the route, an example address, and the access by method.
TABLE = [
    ("", "/", {"GET": A.USERS}),
    ("load/", "/load/", {"GET": A.STAFF}),
    ("now/", "/now/", {"GET": A.STAFF}),
    ("observed/", "/observed/", {"GET": A.USERS}),
    ("me/", "/me/", {"GET": A.USERS, "POST": A.USERS}),
    ("tour/", "/tour/", {"GET": A.NOT_FOUND, "POST": A.NOT_FOUND}),
    ("tour/mailbox/", "/tour/mailbox/", {"GET": A.NOT_FOUND}),
    ("tour/mailbox/<str:key>/", "/tour/mailbox/x/", {"GET": A.NOT_FOUND}),
    ("tour/mailbox/<str:key>/html/", "/tour/mailbox/x/html/", {"GET": A.NOT_FOUND}),
    ("users/", "/users/", {"GET": A.USERS}),
    ("users/<path:name>/", "/users/alice/", {"GET": A.PROJECT}),
    ("projects/", "/projects/", {"GET": A.USERS}),
    ("projects/<path:name>/", "/projects/PHY12/", {"GET": A.PROJECT}),
    (
        "answers/<str:key>/<slug:kind>/",
        "/answers/{answer}/fixed/",
        {"GET": A.PUBLIC, "POST": A.PUBLIC},
    ),
    ("cases/", "/cases/", {"GET": A.USERS, "POST": A.STAFF}),
    ("cases/<int:pk>/", "/cases/{case}/", {"GET": A.PROJECT, "POST": A.STAFF_ACTION}),
    ("cases/<int:pk>/answer/", "/cases/{case}/answer/", {"POST": A.OWNERS_ACTION}),
    ("cases/<int:pk>/draft/", "/cases/{case}/draft/", {"POST": A.STAFF}),
    ("cases/<int:pk>/flags/", "/cases/{case}/flags/", {"GET": A.PROJECT}),
    ("cases/<int:pk>/weeks/", "/cases/{case}/weeks/", {"GET": A.PROJECT}),
    ("compare/", "/compare/", {"GET": A.USERS}),
    ("compare/charts/<slug:name>/", "/compare/charts/mix/", {"GET": A.USERS}),
    ("compare/jobs/", "/compare/jobs/?job={job}", {"GET": A.USERS}),
    ("compare/jobs/<slug:name>/", "/compare/jobs/opens/?job={job}", {"GET": A.USERS}),
    ("compare/presets/<slug:name>/", "/compare/presets/months/", {"GET": A.USERS}),
    ("flags/<int:pk>/", "/flags/{flag}/", {"GET": A.PROJECT}),
    ("flags/<int:pk>/history/", "/flags/{flag}/history/", {"GET": A.PROJECT}),
    ("flags/<int:pk>/similar-jobs/", "/flags/{outlier}/similar-jobs/", {"GET": A.STAFF_VIEW}),
    ("incidents/", "/incidents/", {"GET": A.USERS, "POST": A.USERS}),
    ("incidents/save/", "/incidents/save/", {"POST": A.STAFF}),
    ("incidents/impact/", "/incidents/impact/", {"GET": A.STAFF}),
    ("incidents/impact/<str:server>/times/", "/incidents/impact/mds1/times/", {"GET": A.STAFF}),
    ("incidents/impact/<str:server>/queue/", "/incidents/impact/mds1/queue/", {"GET": A.NOT_FOUND}),
    ("incidents/<int:pk>/", "/incidents/{incident}/", {"GET": A.USERS, "POST": A.STAFF}),
    ("ingest/", "/ingest/", {"GET": A.STAFF}),
    ("ingest/files/<int:pk>/", "/ingest/files/{segment}/", {"GET": A.STAFF}),
    ("ingest/coverage/", "/ingest/coverage/", {"GET": A.STAFF}),
    ("ingest/coverage/unexplained/", "/ingest/coverage/unexplained/", {"GET": A.STAFF}),
    ("ingest/health/", "/ingest/health/", {"GET": A.STAFF}),
    ("ingest/storage/", "/ingest/storage/", {"GET": A.STAFF}),
    ("ingest/streams/", "/ingest/streams/", {"GET": A.STAFF, "POST": A.STAFF}),
    ("ingest/streams/<int:pk>/", "/ingest/streams/{stream}/", {"GET": A.STAFF, "POST": A.STAFF}),
    ("ingest/nids/", "/ingest/nids/", {"GET": A.STAFF}),
    ("ingest/tables/", "/ingest/tables/", {"GET": A.STAFF, "POST": A.STAFF}),
    ("ingest/pending/", "/ingest/pending/", {"GET": A.STAFF}),
    ("jobs/", "/jobs/", {"GET": A.USERS}),
    ("jobs/<int:pk>/", "/jobs/{job}/", {"GET": A.PROJECT}),
    ("jobs/<int:pk>/rpcs/", "/jobs/{job}/rpcs/", {"GET": A.PROJECT}),
    ("jobs/<int:pk>/similar-jobs/", "/jobs/{job}/similar-jobs/", {"GET": A.PROJECT}),
    ("jobs/<int:pk>/panda/", "/jobs/{job}/panda/", {"GET": A.PROJECT}),
    (
        "jobs/<int:pk>/timelines/<slug:name>/",
        "/jobs/{job}/timelines/metadata/",
        {"GET": A.PROJECT},
    ),
    ("jobs/<slug:cluster>/<str:batch_id>/", "/jobs/anvil/3567126/", {"GET": A.PROJECT}),
    ("load-ramp/", "/load-ramp/", {"GET": A.USERS}),
    ("load-ramp/bins/", "/load-ramp/bins/", {"GET": A.USERS}),
    ("load-ramp/over-time/", "/load-ramp/over-time/", {"GET": A.USERS}),
    ("model/", "/model/", {"GET": A.USERS}),
    ("mails/", "/mails/", {"GET": A.USERS}),
    ("mails/preview/", "/mails/preview/?case={case}", {"GET": A.STAFF}),
    ("mails/preview/html/", "/mails/preview/html/?case={case}", {"GET": A.STAFF}),
    ("mails/<int:pk>/html/", "/mails/{mail}/html/", {"GET": A.OWNER}),
    ("mails/<int:pk>/", "/mails/{mail}/", {"GET": A.OWNER, "POST": A.OWNERS_STAFF_ACTION}),
    ("mitigations/", "/mitigations/", {"GET": A.USERS}),
    ("mitigations/log/", "/mitigations/log/", {"GET": A.STAFF, "POST": A.STAFF}),
    ("mitigations/what-worked/", "/mitigations/what-worked/", {"GET": A.USERS}),
    ("mitigations/<int:pk>/", "/mitigations/{mitigation}/", {"GET": A.STAFF_VIEW}),
    (
        "mitigations/<int:pk>/edit/",
        "/mitigations/{mitigation}/edit/",
        {"GET": A.STAFF, "POST": A.STAFF},
    ),
    ("experiments/", "/experiments/", {"GET": A.USERS}),
    ("experiments/upload/", "/experiments/upload/", {"GET": A.USERS, "POST": A.USERS}),
    ("experiments/uploads/<uuid:pk>/", "/experiments/uploads/{upload}/", {"GET": A.OWNER}),
    (
        "experiments/uploads/<uuid:pk>/complete/",
        "/experiments/uploads/{upload}/complete/",
        {"POST": A.OWNER_ALONE},
    ),
    (
        "experiments/uploads/<uuid:pk>/files/<int:file>/parts/<int:number>/",
        "/experiments/uploads/{upload}/files/{upload_file}/parts/0/",
        {"POST": A.OWNER_ALONE},
    ),
    (
        "experiments/shared/<str:key>/",
        "/experiments/shared/wrong/",
        {"GET": A.NOT_FOUND, "POST": A.NOT_FOUND},
    ),
    ("experiments/<slug:slug>/", "/experiments/{experiment}/", {"GET": A.PROJECT}),
    (
        "experiments/<slug:slug>/edit/",
        "/experiments/{experiment}/edit/",
        {"GET": A.OWNER, "POST": A.OWNER},
    ),
    (
        "experiments/<slug:slug>/storage-areas/",
        "/experiments/{experiment}/storage-areas/",
        {"GET": A.OWNER, "POST": A.OWNER},
    ),
    (
        "experiments/<slug:slug>/exports/<slug:section>/<slug:name>/",
        "/experiments/{experiment}/exports/runs/list/",
        {"GET": A.PROJECT},
    ),
    (
        "experiments/<slug:slug>/runs/<int:pk>/",
        "/experiments/{experiment}/runs/{run}/",
        {"GET": A.PROJECT},
    ),
    (
        "experiments/<slug:slug>/runs/<int:pk>/edit/",
        "/experiments/{experiment}/runs/{run}/edit/",
        {"GET": A.OWNER, "POST": A.OWNER},
    ),
    (
        "experiments/<slug:slug>/runs/<int:pk>/attach/",
        "/experiments/{experiment}/runs/{run}/attach/",
        {"POST": A.OWNER},
    ),
    (
        "experiments/<slug:slug>/runs/<int:pk>/attachments/<int:attachment>/",
        "/experiments/{experiment}/runs/{run}/attachments/{attachment}/",
        {"GET": A.PROJECT, "POST": A.OWNER},
    ),
    ("overview/", "/overview/", {"GET": A.USERS}),
    ("overview/<slug:name>/", "/overview/operations/", {"GET": A.USERS}),
    ("panda/", "/panda/", {"GET": A.USERS}),
    ("panda/<slug:cluster>/<int:panda_id>/", "/panda/anvil/4242/", {"GET": A.PROJECT}),
    ("populations/", "/populations/", {"GET": A.USERS, "POST": A.USERS}),
    ("populations/other-metrics/", "/populations/other-metrics/", {"GET": A.USERS}),
    ("populations/histograms/<slug:metric>/", "/populations/histograms/opens/", {"GET": A.USERS}),
    ("populations/<slug:slug>/", "/populations/mine/", {"GET": A.OWNER, "POST": A.OWNER}),
    ("ranking/", "/ranking/", {"GET": A.USERS}),
    ("rules/", "/rules/", {"GET": A.STAFF}),
    ("rules/<slug:code>/", "/rules/stat-storm/", {"GET": A.STAFF, "POST": A.STAFF}),
    (
        "rules/<slug:code>/thresholds/<int:pk>/",
        "/rules/{rule}/thresholds/{thresholds}/",
        {"POST": A.STAFF},
    ),
    (
        "rules/<slug:code>/back-tests/<int:pk>/",
        "/rules/{rule}/back-tests/{test}/",
        {"GET": A.STAFF},
    ),
    (
        "rules/<slug:code>/back-tests/<int:pk>/stop/",
        "/rules/{rule}/back-tests/{test}/stop/",
        {"POST": A.STAFF},
    ),
    ("search/", "/search/", {"GET": A.USERS}),
    ("servers/", "/servers/", {"GET": A.STAFF}),
    ("servers/<str:name>/", "/servers/mds1/", {"GET": A.STAFF}),
    ("servers/<str:name>/clients/", "/servers/mds1/clients/", {"GET": A.STAFF}),
    ("servers/<str:name>/capacity/", "/servers/mds1/capacity/", {"GET": A.STAFF}),
    (
        "servers/<str:name>/capacity/charts/<slug:chart>/",
        "/servers/mds1/capacity/charts/curve/",
        {"GET": A.STAFF},
    ),
    ("servers/<str:name>/charts/<slug:chart>/", "/servers/mds1/charts/wait/", {"GET": A.STAFF}),
    ("styleguide/", "/styleguide/", {"GET": A.STAFF}),
    ("trends/", "/trends/", {"GET": A.USERS}),
    ("trends/change-points/", "/trends/change-points/", {"GET": A.USERS, "POST": A.STAFF}),
    ("trends/<slug:name>/", "/trends/opens/", {"GET": A.USERS}),
    ("palette-<slug:version>.css", "/palette-x.css", {"GET": A.PUBLIC}),
    ("login/", "/login/", {"GET": A.PUBLIC, "POST": A.PUBLIC, "PUT": A.PUBLIC}),
    ("logout/", "/logout/", {"POST": A.PUBLIC}),
    ("tokens/", "/tokens/", {"GET": A.STAFF, "POST": A.STAFF}),
    ("api/v1/", "/api/v1/", {"GET": A.NOTHING}),
    ("api/<path:address>", "/api/v1/nothing/", {"GET": A.NOTHING}),
    ("api/v1/docs/", "/api/v1/docs/", {"GET": A.PUBLIC}),
    ("api/v1/openapi.json", "/api/v1/openapi.json", {"GET": A.PUBLIC}),
    ("api/v1/bounces", "/api/v1/bounces", {"POST": A.BOUNCES}),
    ("api/v1/cases/events/", "/api/v1/cases/events/", {"GET": A.READERS}),
    (
        "api/v1/experiments/<experiment>/runs/<run>/",
        "/api/v1/experiments/x/runs/1/",
        {"PUT": A.WRITERS},
    ),
    (
        "api/v1/experiments/<experiment>/files/",
        "/api/v1/experiments/x/files/",
        {"POST": A.WRITERS},
    ),
    (
        "api/v1/experiments/uploads/<upload_id>/",
        "/api/v1/experiments/uploads/{upload}/",
        {"GET": A.READERS},
    ),
    ("api/v1/mitigations/<key>/", "/api/v1/mitigations/x/", {"PUT": A.WRITERS}),
    ("api/v1/fragments/jobs/", "/api/v1/fragments/jobs/", {"GET": A.READERS}),
    ("api/v1/ingest/batches", "/api/v1/ingest/batches", {"POST": A.INGEST}),
    ("api/v1/metrics", "/api/v1/metrics", {"GET": A.METRICS}),
    ("api/v1/jobs/", "/api/v1/jobs/", {"GET": A.READERS}),
    ("api/v1/panda/jobs/", "/api/v1/panda/jobs/", {"GET": A.READERS}),
    (
        "api/v1/panda/jobs/<pandaid>/plots/",
        "/api/v1/panda/jobs/4242/plots/",
        {"GET": A.READERS},
    ),
    (
        "api/v1/panda/jobs/<pandaid>/series/",
        "/api/v1/panda/jobs/4242/series/",
        {"GET": A.READERS},
    ),
    ("api/v1/panda/records/", "/api/v1/panda/records/?cluster=anvil", {"POST": A.WRITERS}),
    (
        "api/v1/panda/sites/<computingsite>/",
        "/api/v1/panda/sites/ORNL_Titan_MCORE/",
        {"GET": A.READERS},
    ),
    (
        "api/v1/panda/tasks/<jeditaskid>/",
        "/api/v1/panda/tasks/10995522/",
        {"GET": A.READERS},
    ),
    ("api/v1/jobs/query/", "/api/v1/jobs/query/", {"GET": A.READERS, "POST": A.READERS}),
    (
        "api/v1/jobs/<cluster>/<job>/report",
        "/api/v1/jobs/anvil/3567126/report",
        {"GET": A.READERS},
    ),
]
SOURCE = """
[[source]]
name = "mds1-trace"
format = "rpctrace"
server = "mds1"
"""


@pytest.fixture(scope="module")
def _source(heavy_job, tmp_path_factory):
    """Register a source at the site of the job."""
    loading.register(tmp_path_factory.mktemp("source"), SOURCE)


@pytest.fixture
def visitors(client, alice, bob, charlie, sam, _source, call):
    """A function for each kind of visitor, which sends a request."""
    secrets = {
        "ingest token": call("token", "create", "ingest", "--source", "mds1-trace"),
        "metrics token": call("token", "create", "metrics"),
        "bounces token": call("token", "create", "bounces"),
        "read token": call("token", "create", "read", "--user", "alice"),
        "write token": call("token", "create", "write", "--user", "sam"),
    }
    users = {"alice": alice, "bob": bob, "charlie": charlie, "sam": sam}

    def visit(visitor, method, address):
        client.logout()
        headers = {}
        if visitor in users:
            client.force_login(users[visitor])
        elif visitor in secrets:
            headers["Authorization"] = f"Token {secrets[visitor]}"
        return client.generic(method, address, headers=headers)

    return visit


def outcome(answer):
    """Return what became of a request."""
    if answer.status_code == 302 and "/login/?next=" in answer["Location"]:
        return LOG_IN
    if answer.status_code < 500:
        return {401: REFUSED, 403: REFUSED, 404: MISSING}.get(answer.status_code, SERVED)
    return str(answer.status_code)


def test_every_route_has_a_row():
    listed = [route for route, _, _ in TABLE]

    assert sorted(listed) == sorted({r for r, _ in routes() if not r.startswith("admin/")})


def test_every_scope_of_tokens_is_a_visitor():
    assert {f"{scope.value} token" for scope in Token.Scope} == set(TOKENS)


def test_every_method_has_its_access(visitors, page_names):
    for route, address, access in TABLE:
        visitor = "anonymous" if A.PUBLIC in access.values() else "sam"
        answer = visitors(visitor, "OPTIONS", address.format_map(page_names))
        allowed = answer.get("Allow", "GET")

        assert {*allowed.split(", ")} - {"HEAD", "OPTIONS"} == access.keys(), route


@pytest.mark.parametrize("visitor", [*PEOPLE, *TOKENS])
def test_every_visitor_opens_only_permitted_routes(visitors, page_names, visitor):
    number = [*PEOPLE, *TOKENS].index(visitor)
    expected = {
        (route, method): kind.value[number]
        for route, _, access in TABLE
        for method, kind in access.items()
    }

    outcomes = {
        (route, method): outcome(visitors(visitor, method, address.format_map(page_names)))
        for route, address, access in TABLE
        for method in access
    }

    assert outcomes == expected


@pytest.mark.long
def test_the_title_of_a_page_names_its_heading(visitors, page_names):
    differing, headings = [], 0
    for _, address, access in TABLE:
        visitor = "sam" if A.USERS in access.values() or A.STAFF in access.values() else "alice"
        answer = visitors(visitor, "GET", address.format_map(page_names))
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        page = b"".join(answer).decode()
        title, heading = (
            " ".join(re.sub(r"<[^>]+>", " ", match[1]).split()) if match else ""
            for match in (
                re.search(rf"<{name}\b[^>]*>(.*?)</{name}>", page, re.DOTALL)
                for name in ("title", "h1")
            )
        )
        headings += bool(heading)
        name = title.partition(" · ioportal")[0]
        is_same = name in heading or heading in name or name.split()[:2] == heading.split()[:2]
        if heading and not is_same:
            differing.append((address, title, heading))

    assert not differing
    assert headings > 40


@pytest.mark.long
def test_exports_accept_tokens_with_the_rights_of_their_users(visitors, page_names):
    def served(visitor, address):
        answer = visitors(visitor, "GET", address)
        kind = answer["Content-Type"]
        if visitor == "read token" and answer.status_code >= 400:
            assert kind == "application/problem+json" or answer.status_code == 400, address
        return answer.status_code, answer.status_code == 200 and b"".join(answer)[:200]

    accepted = 0
    for _, example, _ in TABLE:
        address = example.format_map(page_names)
        formats = getattr(resolve(address.partition("?")[0]).func, "formats", ())
        if "json" not in formats:
            continue
        address += f"{'&' if '?' in address else '?'}format=json"
        answer = served("read token", address)
        assert answer == served("alice", address), address
        if answer[0] == 200:
            assert visitors("read token", "GET", f"{address}x").status_code == 400, address
        assert outcome(visitors("metrics token", "GET", address)) == REFUSED, address
        assert outcome(visitors("read token", "POST", address)) != SERVED, address
        accepted += answer[0] == 200
    assert accepted > 20


@pytest.mark.parametrize("visitor", [person for person in (*PEOPLE, *TOKENS) if person != "sam"])
def test_admin_pages_require_staff(visitors, visitor):
    for address in {*addresses()} - {"/admin/login/", "/admin/logout/"}:
        if address.startswith("/admin/"):
            assert outcome(visitors(visitor, "GET", address)) == LOG_IN, address
