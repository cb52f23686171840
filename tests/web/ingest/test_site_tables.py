"""Registration of tables by page, and the display of accounts."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from ioportal.site.models import Nid, UserAccount
from tests.logs import Run, sacct
from tests.web.reading import text_of


@pytest.fixture
def upload(module_site):
    def run(client, kind, text, cluster=""):
        file = SimpleUploadedFile("table.txt", text if isinstance(text, bytes) else text.encode())
        return client.post(
            "/ingest/tables/", {"table": kind, "cluster": cluster, "file": file}, follow=True
        )

    return run


def test_staff_upload_a_table_of_nids(as_staff, upload):
    answer = upload(as_staff, "nids", "login3: 10.36.226.12@o2ib203\n", "anvil")

    assert "Registered: cluster anvil" in text_of(answer)
    assert Nid.objects.get(text="10.36.226.12@o2ib203").node.name == "login3"


def test_an_invalid_table_is_rejected_with_a_reason(as_staff, upload):
    for kind, text, reason in (
        ("users", "name,email\nalice,nowhere\n", "Nothing was registered"),
        ("nids", "n1 1@gni", "Name the cluster"),
        ("users", b"name\n\xff", "not UTF-8"),
        ("furlongs", "name", "Select a valid choice"),
    ):
        answer = upload(as_staff, kind, text)

        assert answer.status_code == 400
        assert reason in text_of(answer)
    assert not UserAccount.objects.exists()


def test_tables_are_for_staff(as_alice, upload):
    assert upload(as_alice, "users", "name\nalice\n").status_code == 403
    assert not UserAccount.objects.exists()


def test_the_page_of_a_user_shows_contacts(as_staff, upload, ingest, logs):
    ingest("sacct", logs("j", sacct(Run("77", user="pilot"))), cluster="anvil")
    upload(as_staff, "users", "name,email,projects,team\npilot,ops@example.org,HEP1,PanDA ops\n")

    page = text_of(as_staff.get("/users/pilot/"))

    assert "service account of PanDA ops" in page
    assert "mailto:ops@example.org" in page


def test_contacts_are_hidden_from_other_users(as_alice, alice, upload, ingest, logs, client):
    ingest("sacct", logs("j", sacct(Run("77", user="alice"))), cluster="anvil")
    UserAccount.objects.create(name="alice", email="alice@example.org")
    UserAccount.objects.create(name="bob", email="bob@example.org")

    assert "alice@example.org" in text_of(as_alice.get("/users/alice/"))
    assert list(UserAccount.objects.visible_to(alice)) == [UserAccount.objects.get(name="alice")]


def test_the_registration_page_lists_accounts(as_staff, upload):
    upload(as_staff, "users", "name,team,projects\npilot,PanDA ops,HEP1 HEP2\nalice,,PHY12\n")

    services = text_of(as_staff.get("/admin/site/useraccount/", {"service": "yes"}))

    assert "PanDA ops" in services
    assert "HEP1, HEP2" in services
    assert "PHY12" not in services
