"""Registration of a site from a file: errors are reported, and then nothing is registered."""

import re

import pytest
from django.core.management import CommandError

from ioportal.site.models import Cluster, Filesystem, Nid, Node, Server, ServerVersion, Target
from tests.conftest import SITE
from tests.logs import rpc

CLUSTER = """
[[cluster]]
name = "anvil"
time_zone = "Europe/Berlin"
batch = "slurm"
"""
LAKE = """
[[filesystem]]
name = "lake"
clusters = ["anvil"]
"""
KEPT = "[[target]]\nname='lake-MDT0000'\nfilesystem='lake'\njob_cleanup_interval="


@pytest.fixture
def refused(register):
    """Register a text, expect a refusal that leaves nothing behind, and return its message."""

    def run(text):
        with pytest.raises(CommandError) as refusal:
            register(text)
        assert not Cluster.objects.exists()
        assert not Node.objects.exists()
        return str(refusal.value)

    return run


@pytest.mark.usefixtures("site")
def test_a_whole_site_is_registered():
    assert Node.objects.filter(cluster__name="anvil").count() == 20
    assert Nid.objects.get(text="10.0.0.2@o2ib").node.name == "b2"
    assert [cluster.name for cluster in Filesystem.objects.get(name="lake").clusters.all()] == [
        "anvil",
        "birch",
    ]
    assert Server.objects.get(name="oss1").kind == "oss"
    assert Server.objects.get(name="mds1").versions.get().version == "2.12.5"
    assert {(target.name, target.kind) for target in Target.objects.all()} >= {
        ("lake-MDT0000", "mdt"),
        ("lake-OST0001", "ost"),
    }


def test_registering_again_changes_only_differing_entries(register):
    register(SITE)
    before = {cluster.name: cluster.pk for cluster in Cluster.objects.all()}

    register(SITE.replace("America/New_York", "America/Chicago"))

    assert {cluster.name: cluster.pk for cluster in Cluster.objects.all()} == before
    assert Cluster.objects.get(name="birch").time_zone == "America/Chicago"
    assert Node.objects.count() == 29
    assert ServerVersion.objects.count() == 1


def test_a_rule_gives_nids_that_were_seen_before_their_nodes(register, logs, ingest):
    register(CLUSTER + LAKE + '[[server]]\nname = "mds1"\nfilesystem = "lake"\n')
    ingest("rpctrace", logs("t", rpc("12:00", "7@gni")), server="mds1")
    assert Nid.objects.get(text="7@gni").node is None

    register(CLUSTER + '[cluster.nid_rule]\nnetwork = "gni"\nnode = "nid{number:05d}"\n')

    assert Nid.objects.get(text="7@gni").node.name == "nid00007"


def test_another_rule_gives_nids_other_nodes(register, logs, ingest):
    rule = '[cluster.nid_rule]\nnetwork = "gni"\nnode = "{}"\n'
    server = '[[server]]\nname = "mds1"\nfilesystem = "lake"\n'
    register(CLUSTER + rule.format("n{number}") + LAKE + server)
    ingest("rpctrace", logs("t", rpc("12:00", "7@gni")), server="mds1")

    register(CLUSTER + rule.format("nid{number:05d}"))

    assert Nid.objects.get(text="7@gni").node.name == "nid00007"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[cluster]", "Expected"),
        ("[[cluster]]\nbatch = 'pbs'", "[[cluster]] 1: give it a name."),
        ("[[cluster]]\nname = 7", "[[cluster]] 1: give it a name."),
        ("[cluster]\nname = 'anvil'", "is not a list, or tables in double brackets."),
        ("cluster = 'anvil'", "cluster = 'anvil' is not a list, or tables in double brackets"),
        (CLUSTER + "colour = 'red'", "[[cluster]] 'anvil': unknown key: colour. Keys: batch"),
        ("[[planet]]\nname = 'x'", "the document: unknown key: planet."),
        (CLUSTER.replace("Berlin", "Bonn"), "'Europe/Bonn' is not a time zone"),
        (CLUSTER.replace("slurm", "cron"), "'cron' is not a valid choice"),
        (CLUSTER.replace("slurm", ""), "[[cluster]] 'anvil'"),
        (CLUSTER.replace("anvil", "an anvil"), "[[cluster]] 'an anvil'"),
        (CLUSTER.replace("anvil", "a" * 80), "at most 50 characters"),
        (CLUSTER + "nodes = 7", "nodes = 7 is not a string."),
        (CLUSTER + "nodes = 'n[9-1]'", "nodes: [9-1] is not a range of hosts"),
        (CLUSTER + "nodes = 'n[1-999999]'", "nodes: the host list names 999999 hosts"),
        (CLUSTER + "nid_rule = 5", "5 is not a table"),
        (CLUSTER + "[cluster.nid_rule]\nnetwork = 'gni'", "both parts"),
        (
            CLUSTER + "[cluster.nid_rule]\nnetwork = 'gni'\nnode = 'n{nid}'",
            "write it like 'nid{number:05d}'",
        ),
        (
            CLUSTER + "[cluster.nid_rule]\nnetwork = 'gni'\nnode = 'n{number:99999999}'",
            "write it like 'nid{number:05d}'",
        ),
        (CLUSTER + "nid = 'x'", "nid"),
        (CLUSTER + "[[cluster.nid]]\nnid = '1@gni'", "nid: each entry needs a nid and a node"),
        (CLUSTER + "[[cluster.nid]]\nnid = 1\nnode = 2", "nid = 1 is not a string"),
        (CLUSTER + f"[[cluster.nid]]\nnid = '{'1' * 200}@gni'\nnode = 'n'", "is not a NID"),
        (CLUSTER + "[[cluster.nid]]\nnid = \"a\\u0000\"\nnode = 'n'", "contains a NUL"),
        (CLUSTER + f"[[cluster.nid]]\nnid = '1@gni'\nnode = '{'n' * 300}'", "is not a host name"),
        (CLUSTER + "[[cluster.nid]]\nnid = '1@gni'\nnode = 'a b'", "is not a host name"),
        (CLUSTER + "[[cluster.nid]]\nnid = '1@gni'\nnode = 'n1'\n" * 2, "duplicate NID '1@gni'"),
        (CLUSTER + LAKE.replace("anvil", "titan"), "cluster 'titan' is not registered"),
        (CLUSTER + LAKE.replace('["anvil"]', '"anvil"'), "clusters = 'anvil' is not a list"),
        (CLUSTER + LAKE + "job_id_pattern = '('", "is not a regular expression"),
        (CLUSTER + LAKE + "job_id_pattern = '.*'", "The pattern needs a group"),
        (CLUSTER + LAKE + "job_id_pattern = 5", "[[filesystem]] 'lake'"),
        (CLUSTER + LAKE + "simulated = 'perhaps'", "[[filesystem]] 'lake'"),
        ("[[server]]\nname = 'mds1'", "[[server]] 'mds1': filesystem None is not registered"),
        (CLUSTER + LAKE + "[[server]]\nname='m'\nfilesystem='lake'\nkind='mgs'", "'mgs'"),
        (CLUSTER + LAKE + "[[server]]\nname='m'\nfilesystem='lake'\nversion='2.8'", "version"),
        (
            CLUSTER + LAKE + "[[server]]\nname='m'\nfilesystem='lake'\n[[server.version]]\n"
            "version='2.8'\nsince='May'",
            "since = 'May' is not a date",
        ),
        (
            CLUSTER + LAKE + "[[server]]\nname='m'\nfilesystem='lake'\n[[server.version]]\n"
            f"version='{'2' * 99}'\nsince=2017-01-01",
            "at most 32 characters",
        ),
        (CLUSTER + LAKE + "[[target]]\nname='lake-FOO0000'\nfilesystem='lake'", "kind"),
        (CLUSTER + LAKE + "[[target]]\nname='lake-MDT0000'\nfilesystem=['lake']", "filesystem"),
        (CLUSTER + LAKE + "[[target]]\nname='lake-MDT0000'\nfilesystem='lake'\nserver=3", "server"),
        (CLUSTER + LAKE + KEPT + "'1h'", "job_cleanup_interval = '1h' is not a whole number"),
        (CLUSTER + LAKE + KEPT + "true", "job_cleanup_interval = True is not a whole number"),
        ('[[user]]\nname = "al\\u0000ice"', "name = 'al\\x00ice' contains a NUL character"),
        (CLUSTER + LAKE + KEPT + "0", "job_cleanup_interval"),
        (CLUSTER + LAKE + KEPT + "1_000_000_000_000_000", "is too long"),
    ],
)
def test_an_invalid_document_is_refused_as_a_whole(refused, text, message):
    reason = refused(text)

    assert message in reason
    assert "site.toml" in reason


@pytest.mark.usefixtures("site")
def test_two_clusters_cannot_have_one_network(register):
    other = CLUSTER.replace("anvil", "oak") + '[cluster.nid_rule]\nnetwork = "gni"\n'

    with pytest.raises(CommandError, match="Another cluster has this NID network already"):
        register(other + 'node = "o{number}"\n')


def test_a_file_that_cannot_be_read_is_named(call, tmp_path):
    for path in (tmp_path / "gone.toml", tmp_path):
        with pytest.raises(CommandError, match=re.escape(str(path))):
            call("register", path)
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(CommandError, match=re.escape(str(binary))):
        call("register", binary)
