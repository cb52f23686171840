"""The log of mitigations: its form, list and pages, and the periods to compare."""

import pytest

from ioportal.changes.models import Mitigation
from ioportal.findings.models import CaseEvent
from ioportal.site.models import ServerVersion
from tests.web.conftest import NOON
from tests.web.mitigations.rows import DAY, HOSTILE, log
from tests.web.reading import csv_of, json_of, text_of, words_of

FORM = {"title": "Fix", "kind": "code", "started_at": "2017-07-05 12:00:00"}


def test_staff_log_a_mitigation_with_scope_and_expectation(as_staff):
    answer = as_staff.post(
        "/mitigations/log/",
        {
            **FORM,
            "completed_at": "2017-07-06",
            "scope": "/jobs/?user=alice&start=2017-07-01&sort=-opens",
            "metric": "opens",
            "direction": "less",
            "times": "4",
            "links": "https://example.org/1\nhttp://example.org/2",
            "is_public": "on",
        },
    )
    fix = Mitigation.objects.get()

    assert answer["Location"] == f"/mitigations/{fix.pk}/"
    assert (fix.scope, fix.metric, fix.factor) == ("user=alice", "opens", 0.25)
    assert (fix.complete_at - fix.started_at, fix.source) == (DAY / 2, "hand")
    assert fix.link_list == ["https://example.org/1", "http://example.org/2"]
    assert fix.events.get().by == "sam"


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("title", "", "This field is required."),
        ("title", "\x00", "Null characters are not allowed."),
        ("kind", "magic", "Select a valid choice"),
        ("started_at", "yesterday", "Enter a valid date/time."),
        ("completed_at", "2017-07-05 11:00", "The roll-out must end after the start."),
        ("reverted_at", "2017-07-05 11:00", "It can only be reverted after the roll-out."),
        ("scope", "nothing", "No population"),
        ("scope", "nodes_min=many", "Filter 'nodes_min'"),
        ("scope", "usr=quist", "Unknown filter 'usr'"),
        ("scope", "user=" + "a" * 3_000, "at most 2000 characters"),
        ("links", "javascript:alert(1)", "is not a web address."),
        ("fix_url", "javascript:alert(1)", "Enter a valid URL."),
        ("metric", "panda_wait_s", "Select PanDA jobs (unit=panda)"),
        ("direction", "less", "Select the metric that is expected to change."),
        ("times", "0.5", "greater than or equal to 1"),
        ("times", "4", "Select whether it falls or rises"),
        ("case_key", "x", "Enter a whole number."),
        ("case_key", "-1", "greater than or equal to 1"),
        ("notes", "n" * 20_001, "at most 20000 characters"),
        ("source", "x", "Select a valid choice"),
    ],
)
def test_invalid_facts_are_refused(as_staff, field, value, error):
    page = as_staff.post("/mitigations/log/", {**FORM, field: value})

    assert error in words_of(page)
    assert not Mitigation.objects.exists()


def test_a_direction_is_saved_without_a_number_and_matching_jobs_are_counted(as_staff, new_job):
    new_job()
    facts = {**FORM, "metric": "opens", "direction": "more", "scope": "user=alice"}
    page = as_staff.post("/mitigations/log/", facts, follow=True)
    fix = Mitigation.objects.get()

    assert (fix.direction, fix.factor, fix.expectation) == ("more", None, "Opens rise")
    assert "Its filters match 1 job." in words_of(page)
    initial = as_staff.get(f"/mitigations/{fix.pk}/edit/").context["form"].initial
    assert initial["direction"] == "more"


def test_a_scope_without_jobs_is_pointed_out(as_staff, new_job):
    new_job()
    page = as_staff.post("/mitigations/log/", {**FORM, "scope": "user=nosuch"}, follow=True)

    assert 'class="notice warn"' in text_of(page)
    assert "Its filters match 0 jobs: check its scope." in words_of(page)


def test_a_change_is_recorded_and_keeps_the_source(as_staff):
    fix = log(source="case", case_key=7, metric="opens", factor=0.25, scope="user=alice")
    unchanged = as_staff.get(f"/mitigations/{fix.pk}/edit/").context["form"].initial
    facts = {**FORM, "scope": "user=alice", "metric": "opens", "direction": "less"}
    as_staff.post(f"/mitigations/{fix.pk}/edit/", {**facts, "times": "5", "case_key": 7})
    fix.refresh_from_db()

    assert (unchanged["direction"], unchanged["times"]) == ("less", "4")
    assert (fix.factor, fix.source, fix.case_key) == (0.2, "case", 7)
    assert "times" in fix.events.get().text


def test_staff_delete_a_mitigation(as_staff):
    as_staff.post(f"/mitigations/{log().pk}/edit/", {"delete": "yes"})

    assert not Mitigation.objects.exists()


def test_a_resolved_case_fills_in_the_form(as_staff, new_case, mds):
    case = new_case(filesystem=mds.filesystem)
    as_staff.post(
        f"/cases/{case.pk}/", {"case": case.pk, "action": "resolve", "reason": "Moved.\nAll."}
    )
    link = f"/mitigations/log/?case={case.pk}"
    page = as_staff.get(f"/cases/{case.pk}/")
    initial = as_staff.get(link).context["form"].initial
    case.refresh_from_db()

    assert f'href="{link}"' in text_of(page)
    assert (initial["title"], initial["made_by"]) == ("Moved.", "sam")
    assert (initial["started_at"], initial["source"]) == (case.resolved_at, "case")
    assert initial["scope"] == "user=alice&name=app+a"
    assert "on lake." in initial["notes"]
    log(title=HOSTILE, case_key=case.pk)
    logged = text_of(as_staff.get(f"/cases/{case.pk}/"))
    assert link not in logged.partition('id="past-effects"')[0]
    assert "&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;\\u202e" in logged


def test_an_answer_that_it_is_fixed_offers_the_form(as_staff, new_case):
    case = new_case()
    texts = ("It is fixed. One stripe now.", "This is wrong")
    fixed, wrong = (
        case.events.create(kind=CaseEvent.Kind.ANSWERED, by="alice", text=text) for text in texts
    )
    page = text_of(as_staff.get(f"/cases/{case.pk}/"))
    initial = (
        as_staff.get(f"/mitigations/log/?case={case.pk}&event={fixed.pk}").context["form"].initial
    )

    assert f"event={fixed.pk}" in page
    assert f"event={wrong.pk}" not in page
    assert (initial["title"], initial["made_by"]) == ("One stripe now.", "alice")
    assert (initial["started_at"], initial["source"]) == (fixed.at, "answer")


def test_users_are_not_offered_the_form(as_alice, new_case):
    case = new_case()
    case.events.create(kind=CaseEvent.Kind.ANSWERED, by="alice", text="It is fixed.")

    assert "/mitigations/" not in text_of(as_alice.get(f"/cases/{case.pk}/")).partition("<main")[2]


def test_it_is_filtered_and_exported(as_staff):
    log(title="Mine", scope="user=alice")
    log(title="Server", kind="server", started_at=NOON + 9 * DAY)
    log(title="Other", scope="user=bob")

    def titles(query):
        return [row["title"] for row in csv_of(as_staff.get(f"/mitigations/?format=csv&{query}"))]

    assert titles("") == ["Server", "Other", "Mine"]
    assert titles("kind=server") == ["Server"]
    assert titles("jobs=user%3Dalice") == ["Server", "Mine"]
    assert titles("start=2017-07-08&end=2017-08-01") == ["Server"]
    assert as_staff.get("/mitigations/?format=json&kind=x").status_code == 400
    assert "No mitigations match" in words_of(as_staff.get("/mitigations/?kind=striping"))


def test_an_empty_list_explains_the_next_step(as_staff):
    assert "No mitigations. Log a mitigation" in words_of(as_staff.get("/mitigations/"))


def test_users_see_public_mitigations_only(as_alice):
    log(title="Secret")
    public = log(title=HOSTILE, is_public=True, simulated=True)
    page = text_of(as_alice.get("/mitigations/"))

    assert "Secret" not in page
    assert "Simulated data" in page
    assert "<b>x</b>" not in page
    assert json_of(as_alice.get("/mitigations/?format=json"))["rows"][0]["title"] == HOSTILE
    assert as_alice.get(f"/mitigations/{public.pk}/").status_code == 200


def test_neighbours_upgrades_and_gaps_are_respected(as_staff, new_job, mds):
    for day in (-90, 90):
        new_job(started_at=NOON + day * DAY)
    fix = log(started_at=NOON, scope="user=alice", metric="opens")
    log(title="Same jobs", started_at=NOON - 9 * DAY, scope="user=alice,bob")
    log(title="Other jobs", started_at=NOON - 3 * DAY, scope="user=bob")
    for version, day in (("2.12", -99), ("2.15", 5)):
        ServerVersion.objects.create(server=mds, version=version, since=NOON + day * DAY)
    facts = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))

    assert facts["before"] == (
        "user=alice&start=2017-06-30T12%3A00%3A00%2B00%3A00&end=2017-07-05T12%3A00%3A00%2B00%3A00"
    )
    assert facts["after"].endswith("&end=2017-07-10T12%3A00%3A00%2B00%3A00")
    assert facts["remarks"] == [
        "No counters of the MDTs for 120 h of the period before.",
        "No counters of the MDTs for 120 h of the period after.",
    ]


def test_a_scope_without_jobs_has_none(as_staff):
    page = words_of(as_staff.get(f"/mitigations/{log(scope='user=nobody').pk}/"))

    assert "No job in its scope has started." in page
