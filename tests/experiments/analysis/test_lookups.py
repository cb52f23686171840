"""Look-ups by storage area: the published figures of a job, and the wasted ones by entry."""

from collections import Counter, defaultdict

import polars as pl
import pytest

from collectors.experiments import strace
from collectors.source import Source
from ioportal.experiments.analysis import lookup_findings, lookups, search_paths
from ioportal.experiments.analysis.lookups import Totals
from simulator.experiments import strace as simulated

pytestmark = pytest.mark.long

SCALE = 0.02


@pytest.fixture(scope="session")
def traced(tmp_path_factory):
    """Return the totals of a log of these look-ups, read by the collector."""

    def totals(groups):
        path = tmp_path_factory.mktemp("strace") / "job.strace"
        simulated.write(path, groups)
        result = Totals()
        for part in strace.parse(Source.open(path)):
            assert part.account.rejected == 0
            result.add(part.table)
        path.unlink()
        return result

    return totals


@pytest.fixture(scope="session")
def job():
    return simulated.Job(seed=3, scale=SCALE)


@pytest.fixture(scope="session")
def found(traced, job):
    calls = traced(job.groups).calls
    return lookups.look_ups(calls, lookups.guessed_prefixes(calls))


def rows(table):
    """Return the rows of a table as a frame of calls."""
    return pl.DataFrame(
        [
            {
                "call": call,
                "path": path,
                "error": error,
                "count": 1,
                "timed": 0,
                "duration_s": 0.0,
                "first_line": line,
            }
            for line, (call, path, error) in enumerate(table, 1)
        ]
    )


def searched(*table):
    calls = rows(table)
    found = lookups.look_ups(calls, {"/lustre": "Lustre", "/sw": "NFS"})
    return found, search_paths.searches(found)


def test_the_published_figures_of_an_athena_job_are_reproduced(traced):
    calls = traced(simulated.Job().groups).calls

    found = lookups.look_ups(calls, lookups.guessed_prefixes(calls))

    columns = ("area", "open_ok", "open_failed", "stat_ok", "stat_failed")
    assert lookups.by_area(found).select(columns).rows()[:3] == [
        ("NFS", 109_987, 371_688, 124_522, 318_206),
        ("Lustre", 2_902, 5_860, 2_502, 2_356),
        ("Working directory", 471, 2_605, 365, 995),
    ]
    opened = lookups.opened_files(found)
    assert opened.len() == 6_826
    patterns = lookups.FILE_PATTERNS
    assert lookups.files_by_pattern(opened, patterns) == {"*.so*": 1_899, "*.py(c)": 1_475}


def test_wasted_look_ups_are_those_of_names_that_are_elsewhere(found, job):
    """Counted again from the look-ups themselves, without frames."""
    owners, failed = defaultdict(set), Counter()
    for look_up in (each for group in job.groups for each in group):
        entry, _, name = look_up.path.rpartition("/")
        stem = name.split(".")[0].removesuffix("module") if name.startswith("Conf") else name
        if look_up.succeeded:
            owners[stem].add(entry)
        else:
            failed[entry, stem] += 1
    wasted = Counter()
    for (entry, stem), count in failed.items():
        if owners[stem] - {entry}:
            wasted[entry] += count

    entries = search_paths.searches(found).entries

    assert dict(entries.select("entry", "wasted").iter_rows()) == wasted


def test_removing_unneeded_entries_saves_what_the_cleaned_job_saves(traced, found, job):
    after = traced(simulated.cleaned(job.groups)).calls
    prefixes = lookups.guessed_prefixes(after)

    saving = search_paths.saving(found, search_paths.searches(found), "Lustre")

    assert {entry.path for entry in saving.removed} == set(simulated.UNNEEDED)
    assert [entry.path for entry in saving.blocked] == [simulated.NEEDED_LIBRARIES]
    [after_saving] = [
        row["total"]
        for row in lookups.by_area(lookups.look_ups(after, prefixes)).iter_rows(named=True)
        if row["area"] == "Lustre"
    ]
    assert saving.look_ups - saving.saved_look_ups == after_saving


def test_the_working_directory_is_searched_first(found):
    folders = [simulated.WORKING_DIRECTORY, "."]

    assert search_paths.first_searched(search_paths.searches(found), folders) > 0


def test_subdirectories_of_the_linker_belong_to_their_entry():
    _, found = searched(
        ("open", "/lustre/ext/glibc-hwcaps/x86-64-v3/libm.so.6", "ENOENT"),
        ("stat", "/lustre/ext/glibc-hwcaps/x86-64-v3", "ENOENT"),
        ("open", "/lustre/ext/tls/x86_64/libm.so.6", "ENOENT"),
        ("open", "/lustre/ext/libm.so.6", "ENOENT"),
        ("open", "/sw/lib/x86_64/libm.so.6", ""),
    )

    assert found.entries.select("entry", "wasted", "wasted_open").rows() == [("/lustre/ext", 4, 3)]


def test_packages_belong_to_the_entry_that_contains_them():
    _, found = searched(
        ("stat", "/lustre/site/numpy", "ENOENT"),
        ("open", "/lustre/site/numpy.so", "ENOENT"),
        ("open", "/lustre/site/numpymodule.so", "ENOENT"),
        ("open", "/lustre/site/numpy.py", "ENOENT"),
        ("stat", "/sw/site/numpy", ""),
        ("open", "/sw/site/numpy/__init__.py", ""),
        ("open", "/sw/site/numpy/core.so", "ENOENT"),
        ("open", "/sw/site/numpy/core/__init__.pyc", ""),
        ("open", "/sw/site/numpy/core/os.py", "ENOENT"),
        ("open", "/sw/python/os.py", ""),
    )

    assert found.entries.select("entry", "wasted", "found").rows() == [("/lustre/site", 4, 0)]
    chain = search_paths.chain(found, "numpy")
    assert chain.select("entry", "failed", "found").rows() == [
        ("/lustre/site", 4, 0),
        ("/sw/site", 0, 1),
    ]


def test_an_entry_with_a_needed_file_is_not_proposed():
    look_ups, found = searched(
        ("open", "/lustre/a/libx.so", "ENOENT"),
        ("open", "/lustre/b/libx.so", "ENOENT"),
        ("open", "/sw/lib/libx.so", ""),
        ("open", "/lustre/a/liby.so", ""),
    )

    saving = search_paths.saving(look_ups, found, "Lustre")

    assert [entry.path for entry in saving.removed] == ["/lustre/b"]
    assert [(entry.path, entry.examples) for entry in saving.blocked] == [
        ("/lustre/a", ("liby.so",))
    ]
    assert (saving.opens, saving.failed_opens) == (3, 2)


def test_the_last_of_several_copies_stays_reachable():
    look_ups, found = searched(
        ("open", "/lustre/a/libx.so", ""),
        ("open", "/lustre/b/libx.so", ""),
        ("open", "/lustre/a/libz.so", "ENOENT"),
        ("open", "/lustre/b/libz.so", "ENOENT"),
        ("open", "/sw/lib/libz.so", ""),
    )

    saving = search_paths.saving(look_ups, found, "Lustre")

    assert [entry.path for entry in saving.removed] == ["/lustre/a"]
    assert saving.blocked[0].examples == ("libx.so",)


def test_interrupted_calls_are_no_look_ups():
    found, _ = searched(("open", "/sw/x", "EINTR"), ("open", "/sw/x", ""))

    assert lookups.by_area(found)["total"].to_list() == [1]


def test_the_longest_prefix_decides_the_area():
    paths = pl.Series("path", ["/sw/x", "/sw", "/swing", "/sw/db/y", "rel/x", None])
    prefixes = {"/sw": "NFS", "/sw/db": "Lustre"}

    area = lookups.area_of(pl.col("path"), prefixes)

    assert paths.to_frame().select(area=area)["area"].to_list() == [
        "NFS",
        "NFS",
        "Other",
        "Lustre",
        "Relative paths",
        None,
    ]


def test_files_are_counted_by_pattern():
    paths = pl.Series(["/a/libm.so.6", "/a/x.py", "/a/y.pyc", "/a/z.solution", "/a.so/z"])

    counts = lookups.files_by_pattern(paths, {**lookups.FILE_PATTERNS, "?.py": ["?.py"]})

    assert counts == {"*.so*": 1, "*.py(c)": 2, "?.py": 1}


def test_the_timeline_begins_with_the_first_interval():
    windows = pl.DataFrame(
        {
            "second": [1_000, 1_000, 1_060, 1_070],
            "call": ["open", "openat", "stat", "read"],
            "failed": [False, True, True, False],
            "count": [3, 4, 5, 6],
            "duration_s": [0.0] * 4,
        }
    )

    assert lookups.timeline(windows, 60).rows() == [(0, 3, 4), (60, 0, 5)]


def test_findings_from_a_few_look_ups_do_not_lead():
    calls = rows(
        [("openat", f"/nfs/home/a/lib{n}.so", "ENOENT") for n in range(2)]
        + [("openat", f"/usr/lib/lib{n}.so", "ENOENT") for n in range(584)]
        + [("openat", f"/lustre/a/{n}", "") for n in range(100)]
    )
    prefixes = {"/nfs": "NFS", "/usr": lookups.SYSTEM, "/lustre": lookups.LUSTRE}
    arm = lookup_findings.TracedArm("own", 1, lookups.look_ups(calls, prefixes), prefixes)

    [finding] = lookup_findings.findings([arm])
    assert finding == (
        "Few look-ups on shared storage fail: cleaner search paths would save little. "
        "584 look-ups on the node itself fail; they load no shared storage."
    )
