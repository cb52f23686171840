"""Exports of a centre that one user dominates: none of them reveals her jobs to another user."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import resolve

from ioportal.api.models import Token
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.jobs.models import Job, JobStatistics
from ioportal.load.analysis.waiting import MIN_BASELINE_WINDOWS
from tests import loading
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.web import rows
from tests.web.reading import csv_of, json_of
from tests.web.test_routes import TABLE, A

pytestmark = pytest.mark.long

MORE_EXAMPLES = (
    "/overview/rpcs/", "/trends/metadata_operations/", "/populations/histograms/read_bytes/",
    "/compare/charts/days/",
)  # fmt: skip
OF_OWN_FILES = ("/experiments/", "/model/")
MOST_KEYS = 100  # numbers below may equal any other figure
KEYS = {"id", "job", "run", "key", "batch_id", "flag", "case"}
DORAS, OTHERS = range(1, 13), {13: "erin", 14: "erin", 15: "frank", 16: "frank"}
STORM = at("12:00")
LENGTH_S = 60
SPAN = "start=2017-07-05T12:00:00Z&end=2017-07-05T12:01:00Z"
# A day and the day before, compared with others' jobs.
ARMS = "arm=start%3D2017-07-05%26end%3D2017-07-06&arm=start%3D2017-07-04%26end%3D2017-07-05"


def in_storm(number):
    """Return how many requests dora's first job sends in a step of 10 s."""
    return 2_311 + 97 * number


@pytest.fixture(scope="module")
def centre(module_site, module_logs):
    """Store twelve jobs of dora, four of others and one of alice, who is the visitor."""
    runs = [
        *(Run(f"{500 + n}", nodes=f"n{n}", user="dora", project="ENG1") for n in DORAS),
        *(
            Run(f"{500 + n}", nodes=f"n{n}", user=user, project="ENG2")
            for n, user in OTHERS.items()
        ),
        Run("3567126", nodes="n20"),
    ]
    early = Run("499", nodes="n18", user="erin", project="ENG2", submit="08:00", start="08:30",
                end="11:59")  # fmt: skip
    loading.ingest("sacct", module_logs("jobs", sacct(early, *runs)), cluster="anvil")
    trace = [
        rpc(STORM - timedelta(seconds=10 * n + 60), "18@gni", us=(80, 100))
        for n in range(MIN_BASELINE_WINDOWS + 20, 0, -1)
    ]
    for step in range(LENGTH_S // 10):
        start = STORM + timedelta(seconds=10 * step)
        trace += [
            rpc(start + timedelta(milliseconds=4 * n), "1@gni", us=(300, 1_900))
            for n in range(in_storm(step))
        ]
        trace += [
            rpc(start + timedelta(seconds=1 + n / 4), f"{n}@gni", us=(80, 1_100))
            for n in (*range(2, 17), 20)
        ]
    loading.ingest("rpctrace", module_logs("trace", "\n".join(trace)), server="mds1")
    reads = []
    for minute in (0, 1, 2, 3):
        entries = {"501": {"open": 1 + 61_277 * minute}, "3567126": {"open": 1 + 7 * minute}}
        entries |= {f"{500 + n}": {"open": 1 + 3 * minute} for n in range(2, 17)}
        moment = STORM + timedelta(minutes=minute)
        text = job_stats("lake-MDT0000", entries, snapshot=moment)
        reads.append(module_logs(f"reads{minute}", text, read_at=moment))
    loading.ingest("job_stats", *reads)
    loading.evaluate()
    alice, _ = User.objects.get_or_create(username="alice")
    return rows.page_names(Job.objects.get(batch_id="3567126"), alice)


@pytest.fixture
def exports(centre, alice):
    """Fetch all exports that alice may open: yield address, her answer and staff's answer."""
    _, secret = Token.objects.all().issue(Token.Scope.READ, user=alice)
    visitor, member = Client(), Client()
    visitor.force_login(alice)
    member.force_login(User.objects.create(username="sam", is_staff=True))
    examples = [(example.format_map(centre), access) for _, example, access in TABLE]
    examples += [(address, {}) for address in MORE_EXAMPLES]

    def fetched():
        for address, access in examples:
            if access.get("GET") is A.READERS:
                token = {"Authorization": f"Token {secret}"}
                yield address, visitor.get(f"{address}?cluster=anvil", headers=token), None
                continue
            formats = getattr(resolve(address.partition("?")[0]).func, "formats", ())
            if "json" not in formats or address.startswith(OF_OWN_FILES):
                continue
            joint = "&" if "?" in address else "?"
            for query in ("format=csv", f"{SPAN}&compare=others&{ARMS}&format=json"):
                whole = f"{address}{joint}{query}"
                yield whole, visitor.get(whole), member.get(whole)

    return fetched


def numbers(value, about=""):
    """Yield each number of an export but keys; with `about`, those next to this text."""
    each = value.values() if isinstance(value, dict) else value
    for part in each:
        if isinstance(part, dict | list):
            yield from numbers(part, about)
    if about and not (isinstance(value, dict) and any(about in str(part) for part in each)):
        return
    named = value.items() if isinstance(value, dict) else (("", part) for part in value)
    for name, part in named:
        if name not in KEYS and not isinstance(part, dict | list | bool):
            with suppress(TypeError, ValueError):
                yield float(part)


def content_of(address, answer):
    """Return the content of a table; nothing of a page and of a refusal."""
    if answer is None or answer.status_code != 200:
        return []
    kind = answer.headers["Content-Type"].partition(";")[0]
    return {"text/csv": csv_of, "application/json": json_of}.get(kind, lambda _: [])(answer)


def figures_of(batch_id):
    [figures] = JobStatistics.objects.filter(job__batch_id=batch_id).values()
    return {float(value) for value in figures.values() if isinstance(value, int | float)}


def test_no_export_has_a_figure_of_the_dominant_user(exports):
    shown, hers, common = {}, figures_of("501"), figures_of("3567126")
    for address, answer, of_staff in exports():
        shown[address] = {*numbers(content_of(address, answer))}
        full = content_of(address, of_staff)
        hers |= {*numbers(full, "dora")}
        common |= {*numbers(full, "alice")}
    hidden = {coarse(value) for value in hers if value >= MOST_KEYS}

    revealed = {
        (address, value)
        for address, values in shown.items()
        for value in values - common
        if coarse(value) in hidden
    }

    assert {coarse(in_storm(3) / 10), coarse(183_832)} <= hidden
    assert revealed == set()
    assert sum(map(bool, shown.values())) > 40
