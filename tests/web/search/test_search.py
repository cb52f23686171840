"""Search: a single hit redirects, several are listed."""

import pytest

from ioportal.findings.models import Case, Flag
from ioportal.jobs.models import Allocation, Launch
from ioportal.site.models import Filesystem, Nid, Node, Server, SourceJobId
from ioportal.telemetry.models import Principal
from tests.logs import at
from tests.web.reading import text_of, words_of


@pytest.fixture
def job(new_job, cluster):
    """Job 3567126 of alice in PHY12 on node n1, with launch 9205593."""
    job = new_job(batch_id="3567126")
    node = Node.objects.create(cluster=cluster, name="n1")
    Allocation.objects.create(job=job, node=node)
    Launch.objects.create(cluster=cluster, name="9205593", job=job)
    return job


@pytest.fixture
def task(new_job):
    return new_job(batch_id="77", array_index="4")


@pytest.mark.parametrize(
    ("words", "address"),
    [
        pytest.param("3567126", "/jobs/{job}/", id="a job"),
        pytest.param(" 3567126 ", "/jobs/{job}/", id="pasted with blanks around it"),
        pytest.param("77[4]", "/jobs/{task}/", id="a task of an array"),
        pytest.param("9205593", "/jobs/{job}/", id="a launch"),
        pytest.param("alice", "/users/alice/", id="a user"),
        pytest.param("PHY12", "/projects/PHY12/", id="a project"),
        pytest.param("n1", "/jobs/?node=n1", id="a node: the jobs that ran on it"),
    ],
)
def test_a_single_hit_redirects(as_staff, job, task, words, address):
    answer = as_staff.get("/search/", {"q": words})

    assert answer["Location"] == address.format(job=job.pk, task=task.pk)


def test_a_node_links_to_its_jobs(as_staff, job, task):
    page = words_of(as_staff.get("/jobs/?node=n1"))

    assert "3567126" in page
    assert "77[4]" not in page


def test_several_hits_are_listed(as_staff, job):
    words = words_of(as_staff.get("/search/?q=3567126+alice"))

    assert "1 job 3567126 alice, anvil, completed" in words
    assert "1 user alice" in words


def test_a_name_can_match_user_and_project(as_staff, new_job):
    new_job(owner="chm7", project="chm7")

    words = words_of(as_staff.get("/search/?q=chm7"))

    assert "1 user chm7" in words
    assert "1 project chm7" in words


@pytest.mark.usefixtures("job")
def test_processes_without_a_registered_user_are_found_by_staff(as_staff, client, bob):
    lake = Filesystem.objects.create(name="lake")
    process = SourceJobId.objects.create(filesystem=lake, text="du.4711")
    Nid.objects.create(text="10.0.0.9@tcp")
    Nid.objects.create(text="10.0.0.1@tcp", node=Node.objects.get(name="n1"))
    for name in ("du.4711", "10.0.0.9@tcp"):
        found = words_of(as_staff.get(f"/search/?q={name}"))
        assert f"Processes and hosts outside jobs {name} has no cases. The overview" in found
    assert as_staff.get("/search/?q=n1")["Location"] == "/jobs/?node=n1"  # a host with jobs

    host = Nid.objects.get(text="10.0.0.9@tcp")
    for name, kind, key in (
        ("du.4711", Principal.PROCESS, process.pk),
        ("10.0.0.9@tcp", Principal.HOST, host.pk),
    ):
        case = Case.objects.create(
            rule="process-operations",
            subject_kind="host",
            subject=f"{kind:d}:{key}",
            filesystem=lake,
            state="open",
            severity=Flag.Severity.NOTICE,
            since=at("12:00"),
            until=at("12:10"),
            changed_at=at("12:10"),
        )
        cases = as_staff.get(f"/search/?q={name}")["Location"]
        assert f'href="/cases/{case.pk}/"' in text_of(as_staff.get(cases))
        client.force_login(bob)
        assert "No results" in words_of(client.get(f"/search/?q={name}"))


def test_staff_find_servers(as_staff, client, bob):
    lake = Filesystem.objects.create(name="lake")
    Server.objects.create(filesystem=lake, name="mds1")

    assert as_staff.get("/search/?q=mds1")["Location"] == "/servers/mds1/"
    client.force_login(bob)
    assert "No results" in words_of(client.get("/search/?q=mds1"))


def test_names_with_the_prefix_are_suggested(as_staff, job):
    page = text_of(as_staff.get("/search/?q=ALI"))

    assert "Names with this prefix" in page
    assert 'href="/users/alice/"' in page
    assert 'href="/jobs/?name=ALI"' in page


def test_an_empty_search_shows_help(as_staff):
    assert "Search terms" in words_of(as_staff.get("/search/?q=+"))


def test_hidden_items_are_not_found(client, job, charlie):
    client.force_login(charlie)

    for words in ("3567126", "9205593", "alice", "PHY12", "n1", "ali"):
        answer = client.get("/search/", {"q": words})

        assert "No results" in words_of(answer), words
        assert "Names with this prefix" not in words_of(answer), words


def test_search_terms_are_preserved_and_escaped(as_staff):
    page = text_of(as_staff.get("/search/", {"q": '"><script>alert(1)</script>'}))

    assert "<script>alert" not in page
    assert 'value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in page


def test_the_number_of_terms_is_limited(as_staff, job, django_assert_max_num_queries):
    with django_assert_max_num_queries(70):
        as_staff.get("/search/", {"q": " ".join(f"word{number}" for number in range(1_000))})
