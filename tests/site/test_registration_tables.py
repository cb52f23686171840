"""Existing tables of sites: NIDs as lctl lists them, users as a directory exports them."""

import pytest
from django.core.management import CommandError

from ioportal.ingest.models import DirtyTrace
from ioportal.site.models import Nid, Node, Project, UserAccount
from tests.logs import rpc

USERS = """name;full_name;email;projects;team
alice;Alice Ames;alice@example.org;PHY12 CHM3;
pilot;;panda-ops@example.org;HEP1;PanDA operations
"""


@pytest.fixture
def table(site, call, tmp_path):
    """Register a table."""

    def run(kind, text, *options):
        path = tmp_path / "table.txt"
        path.write_text(text)
        return call("register", path, "--table", kind, *options)

    return run


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("n1: 10.1.0.1@o2ib\nn1: 0@lo\nn2: 10.1.0.2@o2ib\n", id="pdsh lctl list_nids"),
        pytest.param("nid,node\n10.1.0.1@o2ib,n1\n10.1.0.2@o2ib,n2\n", id="a table with a header"),
        pytest.param("n1\t10.1.0.1@o2ib\n\n# two\nn2 10.1.0.2@o2ib\n", id="words and remarks"),
    ],
)
def test_nids_get_their_nodes(table, text):
    table("nids", text, "--cluster=anvil")

    assert Nid.objects.get(text="10.1.0.1@o2ib").node.name == "n1"
    assert Nid.objects.get(text="10.1.0.2@o2ib").node.name == "n2"
    assert not Nid.objects.filter(text="0@lo").exists()


def test_a_node_has_any_number_of_nids(table):
    table("nids", "n3: 10.1.0.3@o2ib 10.1.0.3@tcp", "--cluster=anvil")

    assert set(Node.objects.get(name="n3").nids.values_list("text", flat=True)) == {
        "10.1.0.3@o2ib",
        "10.1.0.3@tcp",
    }


def test_nodes_are_names_and_folded_lists(table):
    table("nodes", "login1 login2\ngpu[01-03]\n", "--cluster=anvil")

    assert Node.objects.filter(name__in=["login2", "gpu03"]).count() == 2


def test_users_have_addresses_projects_and_service_accounts_teams(table):
    table("users", USERS)
    table("users", "user,mail\nalice,ames@example.org\n")

    alice, pilot = UserAccount.objects.all()
    assert (alice.email, alice.projects) == ("ames@example.org", ["PHY12", "CHM3"])
    assert (alice.is_service, pilot.is_service) == (False, True)
    assert pilot.team == "PanDA operations"


def test_projects_have_a_contact_with_an_address_or_an_account(table):
    table("users", "name,full_name,email\nalice,Alice Ames,alice@example.org\n")
    table("projects", "project,user\nPHY12,alice\n")
    table("projects", "project;contact;mail;user\nHEP1;Production;hep@example.org;\n")

    hep, phy = Project.objects.all()
    assert (hep.contact_name, hep.address) == ("Production", "hep@example.org")
    assert (phy.contact_name, phy.address) == ("Alice Ames", "alice@example.org")

    table("projects", "project,email\nPHY12,phy@example.org\n")

    phy.refresh_from_db()
    assert (phy.contact_name, phy.address) == ("Alice Ames", "phy@example.org")


def test_new_nids_cause_new_attribution_and_new_people_do_not(table, ingest, logs):
    ingest("rpctrace", logs("t", rpc("12:10", "10.9.9.9@tcp")), server="mds1")

    table("users", USERS)
    table("projects", "project,user\nPHY12,alice\n")
    assert not DirtyTrace.objects.exists()

    table("nids", "n1 10.9.9.9@tcp", "--cluster=anvil")
    assert DirtyTrace.objects.exists()


@pytest.mark.parametrize(
    ("kind", "text", "options", "message"),
    [
        ("nids", "n1 10.1.0.1@o2ib\nn2 n3\n", ["--cluster=anvil"], "line 2: expected one node"),
        ("nids", "n1 10.1.0.1@o2ib\n", [], "Name the cluster"),
        ("nids", "n1 10.1.0.1@\n", ["--cluster=anvil"], "is not a NID"),
        ("users", "alice,alice@example.org\n", [], "unknown columns"),
        ("users", "name,email\nalice\n", [], "line 2: expected 2 cells"),
        ("users", "name,email\nalice,nowhere\n", [], "'alice': email"),
        ("users", 'name,email\n"alice,a@b.org\n', [], "line 2"),
        (
            "projects",
            "project,phone\nPHY12,1\n",
            [],
            "Use name and, if present, contact, email and",
        ),
        ("projects", "project,contact\nPHY12,Alice\n", [], "needs the mail address"),
        ("projects", "project,user\nPHY12,alice\n", [], "user 'alice' is not registered"),
        ("projects", "project,email\nPHY12,nowhere\n", [], "'PHY12': email"),
        ("site", "[[user", [], "Expected"),
    ],
)
def test_an_invalid_table_is_refused_as_a_whole(table, kind, text, options, message):
    with pytest.raises(CommandError, match="Nothing was registered") as refusal:
        table(kind, text, *options)

    assert message in str(refusal.value)
    assert not UserAccount.objects.exists()
    assert not Nid.objects.filter(text__startswith="10.1.0.1@").exists()
