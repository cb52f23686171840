"""The page of all tokens, for staff."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.messages import get_messages
from django.utils import timezone
from structlog.testing import capture_logs

from ioportal.api.models import Token
from ioportal.site.models import Cluster, Source
from tests.web.reading import text_of, words_of

LOOK_UP = "/api/v1/jobs/query/?json"


@pytest.fixture
def create(as_staff):
    """Create a token on the page; return the answer and the secret, if there is one."""

    def post(scope, **facts):
        answer = as_staff.post("/tokens/", {"action": "create", "scope": scope, **facts})
        secret = re.search(r"ioportal_[\w-]{30,}", text_of(answer))
        return answer, secret and secret[0]

    return post


@pytest.mark.parametrize("scope", Token.Scope.values)
def test_staff_create_tokens_of_every_scope(create, alice, client, queries, scope):
    cluster = Cluster.objects.create(name="anvil", time_zone="UTC", batch_system="slurm")
    source = Source.objects.create(name="anvil-jobs", format="sacct", cluster=cluster)
    owner = {"ingest": {"source": source.pk}, "read": {"user": "alice"}, "write": {"user": "sam"}}

    answer, secret = create(scope, name="batch7", days="30", **owner.get(scope, {}))

    stored = Token.for_secret(secret, timezone.now())
    assert (stored.scope, stored.name) == (scope, "batch7")
    assert stored.expires_at - stored.created_at == pytest.approx(
        timedelta(days=30), abs=timedelta(minutes=1)
    )
    assert "no-store" in answer["Cache-Control"]
    assert secret not in str(queries("SELECT * FROM api_token"))
    assert secret not in str(dict(client.session.items()))
    assert not list(get_messages(answer.wsgi_request))
    assert secret not in text_of(client.get("/tokens/"))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"scope": "write", "user": "alice"}, "belongs to a member of staff"),
        ({"scope": "read"}, "belongs to one user"),
        ({"scope": "ingest"}, "belongs to one source"),
        ({"scope": "metrics", "user": "alice"}, "belongs to one user"),
        ({"scope": "read", "user": "nobody"}, "no active user of this name"),
        ({"scope": "read", "user": "a\x00"}, "Null characters are not allowed"),
        ({"scope": "read", "user": "alice", "days": "0"}, "greater than or equal to 1"),
        ({"scope": "root", "user": "alice"}, "not one of the available choices"),
    ],
)
def test_tokens_that_fit_no_scope_are_refused(create, alice, facts, reason):
    answer, secret = create(**facts)

    assert reason in words_of(answer)
    assert secret is None
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"scope": "write", "user": "sam"}, "Only superusers create tokens of other members"),
        ({"scope": "read", "user": "sam"}, "Only superusers create tokens of other members"),
        ({"scope": "write", "user": "stella"}, "Only superusers create tokens of other members"),
        ({"scope": "metrics", "days": ""}, "This field is required"),
        ({"scope": "metrics", "days": "366"}, "less than or equal to 365"),
        ({"scope": "write", "user": "steve"}, None),
        ({"scope": "read", "user": "alice"}, None),
        ({"scope": "metrics"}, None),
    ],
)
def test_a_token_never_exceeds_its_maker(client, sam, alice, facts, reason):
    """Steve and Stella are staff, sam is a superuser."""
    User.objects.create(username="stella", is_staff=True)
    client.force_login(User.objects.create(username="steve", is_staff=True))

    answer = client.post("/tokens/", {"action": "create", "days": "365", **facts})

    assert Token.objects.exists() == (reason is None)
    assert reason is None or reason in words_of(answer)


@pytest.mark.parametrize(
    ("made", "changed", "facts"),
    [
        ({"scope": "read", "user": "alice"}, "alice", {"is_staff": True}),
        ({"scope": "read", "user": "alice"}, "alice", {"is_superuser": True}),
        ({"scope": "read", "user": "alice"}, "steve", {"is_staff": False}),
        ({"scope": "metrics"}, "steve", {"is_staff": False}),
        ({"scope": "metrics"}, "steve", {"is_active": False}),
        ({"scope": "write", "user": "sam"}, "stella", {"is_superuser": False}),
    ],
)
def test_a_token_is_suspended_while_its_maker_could_not_make_it(
    client, sam, alice, made, changed, facts
):
    """Steve is staff; Stella and sam are superusers."""
    for name in ("steve", "stella"):
        User.objects.create(username=name, is_staff=True, is_superuser=name == "stella")
    maker = User.objects.get(username="stella" if made.get("user") == "sam" else "steve")
    client.force_login(maker)
    client.post("/tokens/", {"action": "create", "days": "365", **made})

    def states():
        return [token.state for token in Token.objects.all().with_states(timezone.now())]

    assert states() == ["valid"]
    User.objects.filter(username=changed).update(**facts)
    assert states() == ["suspended"]
    User.objects.filter(username=changed).update(is_staff=changed != "alice", is_active=True,
                                                 is_superuser=changed == "stella")  # fmt: skip
    assert states() == ["valid"]


def test_only_superusers_change_users_and_groups(client, as_staff, alice):
    permissions = Permission.objects.filter(content_type__app_label="auth")
    steve = User.objects.create(username="steve", is_staff=True)
    steve.user_permissions.set(permissions)
    group = Group.objects.create(name="PHY12")
    pages = [
        f"/admin/auth/user/{alice.pk}/password/",
        "/admin/auth/user/add/",
        "/admin/auth/group/add/",
        f"/admin/auth/group/{group.pk}/delete/",
    ]
    assert [as_staff.get(page).status_code for page in pages] == [200] * len(pages)

    client.force_login(steve)

    assert [client.get(page).status_code for page in pages] == [403] * len(pages)
    client.post(f"/admin/auth/user/{steve.pk}/change/", {"username": "steve", "is_superuser": "on"})
    steve.refresh_from_db()
    assert not steve.is_superuser


def test_superusers_create_tokens_without_an_end(create):
    create("metrics", days="")

    assert Token.objects.get().expires_at is None


def test_a_token_to_write_is_suspended_while_its_user_is_not_staff(create, sam, client, call):
    _, secret = create("write", user="sam")
    headers = {"Authorization": f"Token {secret}"}
    assert client.get(LOOK_UP, headers=headers).status_code == 200

    sam.is_staff = False
    sam.save()
    refused = client.get(LOOK_UP, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "token")
    assert "suspended" in call("token", "list")

    sam.is_staff = True
    sam.save()
    assert client.get(LOOK_UP, headers=headers).status_code == 200


def test_staff_revoke_any_token_and_the_log_names_them(as_staff, alice, call):
    call("token", "create", "read", "--user", "alice")
    token = Token.objects.get()

    with capture_logs() as events:
        answer = as_staff.post("/tokens/", {"action": "revoke", "token": token.pk}, follow=True)

    assert f"Token {token.pk} is revoked." in words_of(answer)
    assert {"event": "token_revoked", "token": token.pk, "by": "sam"}.items() <= events[0].items()
    token.refresh_from_db()
    assert token.revoked_at
    for number in ("x", "²", "9" * 5_000, token.pk):
        assert as_staff.post("/tokens/", {"action": "revoke", "token": number}).status_code == 302


def test_the_list_is_paged_newest_first(as_staff, alice, django_assert_max_num_queries):
    tokens = [
        Token(scope="read", user=alice, name=f"host {n}", digest=f"{n:064}") for n in range(60)
    ]
    Token.objects.bulk_create(tokens)

    with django_assert_max_num_queries(6):
        page = words_of(as_staff.get("/tokens/"))

    assert "60 tokens" in page
    assert page.index("host 59") < page.index("host 10")
    assert "host 9 " not in page
    assert "host 9 " in words_of(as_staff.get("/tokens/?page=2"))
