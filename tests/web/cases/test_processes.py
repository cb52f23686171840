"""Processes outside jobs by job_stats alone: their users, their findings, and who sees them."""

import pytest

from ioportal.findings import history
from ioportal.findings.models import Case, Flag
from ioportal.load.principals import process_names_of
from ioportal.site import process_names
from ioportal.site.models import SourceJobId, UserAccount
from tests.logs import at, job_stats
from tests.web.reading import words_of

OPERATIONS = {"du.4711": 9_000, "find.4711": 1_000, "ls.4712": 10, "kworker/0:1.0": 90_000}


@pytest.fixture
def busy(site, logs, ingest, evaluate):
    """Read counters for five minutes: two processes of alice, one of another user, a daemon."""
    UserAccount.objects.create(name="alice", uid=4711)
    for minute in range(6):
        clock = f"12:{minute:02}"
        entries = {
            name: {"open": 1, "getattr": count * minute} for name, count in OPERATIONS.items()
        }
        text = job_stats("lake-MDT0000", entries, snapshot=clock)
        ingest("job_stats", logs(f"read-{minute}", text), at=at(clock).isoformat())
    evaluate()


@pytest.mark.parametrize(
    ("text", "uid"),
    [("du.4711", 4711), ("a.b.0", 0), (".4711", None), ("du", None), ("du.x", None),
     ("du.12345678901", None), ("4711", None)],
)  # fmt: skip
def test_the_user_id_is_the_last_part_of_a_name(text, uid):
    assert process_names.uid_of(text) == uid


def test_the_processes_of_a_user_are_one_finding(busy):
    flags = {flag.subject: flag for flag in Flag.objects.unresolved()}

    alice, root = f"2:{process_names.key_of_uid(4711)}", f"2:{process_names.key_of_uid(0)}"
    assert set(flags) == {alice, root}
    flag = flags[alice]
    assert (flag.rule, flag.owner, flag.value) == ("process-operations", "alice", 50_000)
    assert (flag.severity, flag.case.owner) == (Flag.Severity.NOTICE, "alice")
    assert flag.numbers["process_operations_share"] == 0.1  # 10,000 / 100,010: others are in it
    curve = history.for_flag(flag)
    assert curve.amounts["amount"].to_list() == [10_000, 20_000, 30_000, 40_000, 50_000]
    assert flags[root].owner == ""


def test_users_see_their_own_processes_alone(busy, as_alice, as_bob, as_staff):
    case = Case.objects.get(owner="alice")
    pages = [client.get(f"/cases/{case.pk}/") for client in (as_alice, as_bob, as_staff)]
    home = words_of(as_staff.get("/"))

    assert [page.status_code for page in pages] == [200, 404, 200]
    for page in (pages[0], pages[2]):  # any user can send such a name
        assert "processes named *.4711 (user not proven)" in words_of(page)
    assert "process du.4711 (user not proven)" in home
    assert "process ls.4712" in home


def test_the_name_of_a_process_finds_its_user(new_job, as_staff):
    UserAccount.objects.create(name="alice", uid=4711)
    new_job(owner="alice")

    assert "alice" in words_of(as_staff.get("/search/?q=du.4711", follow=True))


def test_processes_are_named_with_their_registered_user(busy):
    keys = dict(SourceJobId.objects.values_list("text", "pk"))
    wanted = [*keys.values(), process_names.key_of_uid(4711), process_names.key_of_uid(4712)]

    names = {name.text: name.user for name in process_names_of(wanted).values()}

    assert names == {
        "process du.4711 (user not proven)": "alice",
        "process find.4711 (user not proven)": "alice",
        "process ls.4712": "",
        "process kworker/0:1.0": "",
        "processes named *.4711 (user not proven)": "alice",
        "processes named *.4712 (user not proven)": "",
    }
