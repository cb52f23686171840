"""Saved populations: names, addresses, and who sees and changes them."""

import pytest
from django.contrib.auth.models import User

from ioportal.jobs.models import Population
from tests.web.reading import json_of, text_of, words_of


def name_it(client, query="", **fields):
    return client.post(f"/populations/?{query}", {"query": query, **fields}, follow=True)


def test_a_saved_population_has_a_name_and_a_url(as_alice, week):
    page = name_it(as_alice, "user=alice&nodes_min=3", name="Big ones, 10/25/16")

    assert page.redirect_chain[-1][0] == "/populations/big-ones-102516/"
    assert "Big ones, 10/25/16" in words_of(page)
    assert "nodes at least: 3" in words_of(page)
    assert "6 jobs" in words_of(page)
    assert 'href="/jobs/?user=alice&amp;nodes_min=3"' in text_of(page)


def test_another_range_of_a_saved_population_is_shown(as_alice, week):
    name_it(as_alice, "user=alice&start=2017-07-05T00:00:00Z", name="Week")

    before = as_alice.get("/populations/week/?end=2017-07-05")
    after = as_alice.get("/populations/week/?end=2017-07-06")

    assert "0 jobs" in words_of(before)
    assert "9 jobs" in words_of(after)
    assert "/other-metrics/?saved=week&amp;end=2017-07-06" in text_of(after)


def test_private_populations_are_deleted_with_the_account(as_alice, alice):
    name_it(as_alice, "user=alice", name="Mine")
    name_it(as_alice, "user=alice", name="Ours", is_shared="on")

    alice.delete()

    assert list(Population.objects.values_list("name", "owner")) == [("Ours", None)]


def test_used_and_reserved_slugs_get_a_number(as_alice, alice, bob):
    for owner, name in ((bob, "Pilots"), (bob, "Others")):
        name_it_as = Population(name=name, owner=owner)
        name_it_as.choose_slug()
        name_it_as.save()
    name_it(as_alice, name="Pilots")
    again = name_it(as_alice, name="Pilots")

    assert set(Population.objects.values_list("slug", flat=True)) == {
        "pilots",
        "pilots-2",
        "others-2",
    }
    assert "A population &#x27;Pilots&#x27; exists already." in text_of(again)


def test_a_saved_population_is_private_until_shared(client, as_alice, bob, charlie):
    name_it(as_alice, "user=alice", name="Mine")
    name_it(as_alice, "user=alice", name="Ours", is_shared="on")
    client.force_login(charlie)

    assert client.get("/populations/mine/").status_code == 404
    assert "Mine" not in words_of(client.get("/populations/"))
    assert "Ours" in words_of(client.get("/populations/"))


def test_a_shared_population_does_not_extend_access(client, as_alice, charlie, week):
    name_it(as_alice, name="Everything", is_shared="on")
    client.force_login(charlie)
    page = client.get("/populations/everything/")

    assert "No visible jobs" in words_of(page)
    assert (
        json_of(client.get("/populations/everything/?format=json"))["populations"][0]["jobs"] == 0
    )


@pytest.mark.parametrize(
    ("person", "status"),
    [("alice", 302), ("sam", 302), ("bob", 403), ("charlie", 403)],
)
def test_owner_and_staff_can_change_a_population(client, request, alice, person, status):
    Population.objects.create(name="A", slug="a", owner=alice, is_shared=True)
    client.force_login(request.getfixturevalue(person))
    fields = {"name": "B", "query": "/jobs/?user=bob&sort=opens", "is_shared": "on"}

    assert client.post("/populations/a/", fields).status_code == status
    changed = Population.objects.get()
    assert (changed.name, changed.query, changed.slug) == (
        ("B", "user=bob", "a") if status == 302 else ("A", "", "a")
    )
    assert changed.owner == alice
    assert client.post("/populations/a/", {"delete": "yes"}).status_code == status


def test_staff_manage_populations_of_former_users(client, alice, sam):
    Population.objects.create(name="A", slug="a", owner=alice, is_shared=True)
    User.objects.get(username="alice").delete()
    client.force_login(sam)

    assert "saved by a former user" in words_of(client.get("/populations/a/"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("start=never", "Filter 'start'"),
        ("usr=quist", "Unknown filter 'usr'. Filters of jobs: "),
        ("unit=panda&queue=batch", "Unknown filter 'queue'. Filters of PanDA jobs: "),
        ("start=2017-10-20&end=2017-10-10", "contradicts"),
        ("/jobs/panda/?user=quist", "neither a saved population nor the URL of a job list"),
    ],
)
def test_invalid_filters_cannot_be_saved(as_alice, text, reason):
    page = as_alice.post("/populations/", {"name": "A", "query": text})

    assert reason in words_of(page)
    assert not Population.objects.exists()
