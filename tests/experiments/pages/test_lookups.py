"""Look-ups of traced runs in the browser: what to fix, areas, entries, names, and settings."""

import re

import pytest

from ioportal.experiments.models import Experiment
from simulator.experiments import strace as simulated
from tests.collectors.conftest import FIXTURES
from tests.web.reading import csv_of, json_of, words_of

PAGE = "/experiments/athena/"
SCALE = 0.01


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The logs of a job before and after its search paths were cleaned."""
    groups = simulated.Job(seed=5, scale=SCALE).groups
    folder = tmp_path_factory.mktemp("strace")
    for name, kept in (("before", groups), ("after", simulated.cleaned(groups))):
        simulated.write(folder / name, kept)
    return {name: (folder / name).read_bytes() for name in ("before", "after")}


@pytest.fixture
def traced(as_alice, send, logs):
    """Alice's experiment with both logs."""
    for arm, content in logs.items():
        send(as_alice, content, f"{arm}.strace", "ATHENA", arm=arm)
    return as_alice


def test_a_log_is_recognised_and_shows_what_to_fix(as_alice, send, logs, latest):
    send(as_alice, logs["before"], "job.strace", "ATHENA")

    assert "none rejected" in latest().message
    page = words_of(as_alice.get(PAGE))
    lustre = re.search(r"(\d+) % of the opens on Lustre fail \((\d+) of (\d+)\)", page)
    assert [int(number) for number in lustre.groups()[1:]] == [59, 88]
    assert "3 search-path entries cause" in page
    for entry in simulated.UNNEEDED:
        assert entry in page
    assert f"Keep {simulated.NEEDED_LIBRARIES} in spite of" in page
    assert "The working directory is searched first" in page


def test_the_table_has_the_figures_of_the_log(traced):
    rows = csv_of(traced.get(f"{PAGE}exports/lookups/areas/?format=csv"))

    [nfs] = [row for row in rows if (row["arm"], row["area"]) == ("before", "NFS")]
    expected = {key: round(count * SCALE) for key, count in simulated.MEASURED.items()}
    assert int(nfs["open_failed"]) == expected[simulated.RELEASE, "open", False]
    assert int(nfs["stat_ok"]) == expected[simulated.RELEASE, "stat", True]


def test_the_arms_are_compared(traced):
    page = words_of(traced.get(PAGE))
    facts = json_of(traced.get(f"{PAGE}exports/lookups/entries/?format=json"))

    assert re.search(r"after against before: \d+ % fewer look-ups on Lustre", page)
    assert "Wasted, after" in page
    before = {row["entry"] for row in facts["rows"] if row["arm"] == "before"}
    after = {row["entry"] for row in facts["rows"] if row["arm"] == "after"}
    assert set(simulated.UNNEEDED) == (before - after) - {simulated.WORKING_DIRECTORY}


def test_every_chart_and_table_has_exports(traced):
    page = traced.get(PAGE).content.decode()

    addresses = set(re.findall(rf'href="({PAGE}exports/lookups/[^"]+csv[^"]*)"', page))
    assert len(addresses) == 2 + 5
    for address in addresses:
        assert traced.get(address.replace("&amp;", "&")).status_code == 200


def test_the_owner_declares_storage_areas_and_patterns(traced):
    form = traced.get(f"{PAGE}storage-areas/")
    assert "/cvmfs = CVMFS" in form.content.decode()

    traced.post(
        f"{PAGE}storage-areas/",
        {"areas": "/lustre = Disk\n/ccs/ = Releases", "patterns": "text = *.txt"},
    )

    page = words_of(traced.get(PAGE))
    assert "of the opens on Disk fail" in page
    assert "Releases" in page
    assert "Storage areas: declared for this experiment." in page
    settings = Experiment.objects.get().settings
    assert settings["storage_areas"] == {"/lustre": "Disk", "/ccs": "Releases"}
    assert settings["file_patterns"] == {"text": ["*.txt"]}
    traced.post(f"{PAGE}storage-areas/", {"areas": "", "patterns": ""})
    assert Experiment.objects.get().settings == {}


@pytest.mark.parametrize(
    ("areas", "message"),
    [
        ("lustre = Disk", "a prefix is an absolute path"),
        ("/lustre", "expected name = value"),
        ("\n".join(f"/{n} = x" for n in range(101)), "At most 100 lines"),
    ],
)
def test_unusable_areas_are_refused(traced, areas, message):
    response = traced.post(f"{PAGE}storage-areas/", {"areas": areas, "patterns": ""})

    assert message in words_of(response)
    assert Experiment.objects.get().settings == {}


def test_only_the_owner_changes_areas(traced, as_bob):
    assert as_bob.get(f"{PAGE}storage-areas/").status_code == 404
    assert as_bob.post(f"{PAGE}storage-areas/", {"areas": "/x = y"}).status_code == 404


def test_a_summary_shows_its_calls(as_alice, send):
    send(as_alice, (FIXTURES / "strace" / "summary.txt").read_bytes(), "summary.txt", "ATHENA")

    page = words_of(as_alice.get(PAGE))
    assert "The log has no paths" in page
    assert "openat 700 110" in page


def test_files_of_one_run_add_up(as_alice, send):
    """As strace -ff writes them, a file per process."""
    lines = b'1795163276.1 open("/lustre/x", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
    send(as_alice, [lines, lines * 2], "trace.1", "ATHENA", run="job")

    [row] = csv_of(as_alice.get(f"{PAGE}exports/lookups/areas/?format=csv"))
    assert row["open_failed"] == "3"
