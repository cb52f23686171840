"""Contacts on pages that name a user as the cause of something."""

import pytest

from ioportal.site.models import Project, UserAccount
from tests.web.reading import text_of, words_of

MAIL = "mailto:alice@example.org"
KNOWN = "Alice Ames, alice@example.org (PHY12)"
UNKNOWN = "register an address"


@pytest.fixture
def pages(new_job, new_case):
    """Pages about a flagged job of alice."""
    job = new_job({"metadata_operations": 3_000_000})
    case = new_case(job)
    flag = case.flags.get()
    return [
        "/",
        f"/jobs/{job.pk}/",
        f"/flags/{flag.pk}/",
        f"/cases/{case.pk}/",
        "/cases/",
        "/ranking/",
        "/ranking/?of=application",
        "/ranking/?of=job",
        "/users/alice/",
    ]


@pytest.fixture
def account(db):
    """The account of alice."""
    return UserAccount.objects.create(
        name="alice", full_name="Alice Ames", email="alice@example.org", projects=["PHY12"]
    )


def test_staff_see_name_address_and_projects(as_staff, pages, account):
    for page in pages:
        answer = as_staff.get(page)

        assert MAIL in text_of(answer), page
        assert KNOWN in words_of(answer), page


def test_staff_are_led_to_the_form_of_a_missing_address(as_staff, pages):
    for page in pages:
        answer = as_staff.get(page)

        assert UNKNOWN in words_of(answer), page
        assert '"/admin/site/useraccount/add/?name=alice"' in text_of(answer), page


def test_an_account_without_address_is_completed(as_staff, pages, account):
    UserAccount.objects.update(email="", team="PanDA ops")

    page = as_staff.get(pages[1])

    assert f"service account of PanDA ops, {UNKNOWN} (PHY12)" in words_of(page)
    assert f'"/admin/site/useraccount/{account.pk}/change/"' in text_of(page)


def test_members_of_a_project_see_no_address_of_each_other(client, bob, pages, account):
    client.force_login(bob)

    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200, page
        assert MAIL not in text_of(answer), page
        assert UNKNOWN not in words_of(answer), page


def test_users_see_their_own_address(as_alice, pages, account):
    for page in set(pages) - {"/ranking/", "/ranking/?of=application", "/ranking/?of=job"}:
        assert MAIL in text_of(as_alice.get(page)), page
        assert "Contact:" not in words_of(as_alice.get(page)), page  # not for herself


def test_staff_and_members_of_a_project_see_its_contact(client, sam, alice, bob, pages):
    def page_for(user):
        client.force_login(user)
        return client.get("/projects/PHY12/")

    assert '"/admin/site/project/add/?name=PHY12"' in text_of(page_for(sam))
    assert "Contact:" not in words_of(page_for(bob))
    Project.objects.create(name="PHY12", contact="Dora Dean", email="dean@example.org")

    assert "Contact: Dora Dean, dean@example.org" in words_of(page_for(sam))
    assert "Contact: Dora Dean, dean@example.org" in words_of(page_for(bob))
    # alice owns a job of the project, but is not a member.
    assert "dean@example.org" not in text_of(page_for(alice))


@pytest.mark.parametrize(
    "page", ["/", "/cases/", "/ranking/", "/ranking/?of=job", "/users/", "/overview/"]
)
def test_numbers_of_queries_do_not_grow_with_users(
    as_staff, new_case, new_job, django_assert_max_num_queries, page
):
    for owner in ("u1", "u2"):
        new_case(new_job({"metadata_operations": 5}, owner=owner, name=owner))
    with django_assert_max_num_queries(1_000) as few:
        as_staff.get(page)
    for owner in ("u3", "u4", "u5", "u6"):
        new_case(new_job({"metadata_operations": 5}, owner=owner, name=owner))
        UserAccount.objects.create(name=owner, email=f"{owner}@example.org")

    with django_assert_max_num_queries(len(few)):
        as_staff.get(page)
