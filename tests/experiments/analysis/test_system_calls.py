"""Totals of system calls: rows of parts add up, and paths are bounded."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from collectors.tables import SYSTEM_CALLS
from ioportal.experiments.analysis.lookups import Totals

ROWS = st.fixed_dictionaries(
    {
        "second": st.none() | st.sampled_from([0, 10, 1_795_163_270]),
        "call": st.sampled_from(["openat", "newfstatat"]),
        "path": st.none() | st.sampled_from(["/lustre/a/x.so", "/lustre/a/y.so", "rel", "/"]),
        "error": st.sampled_from(["", "ENOENT"]),
        "count": st.integers(1, 100),
        "timed": st.integers(0, 1),
        "duration_s": st.integers(0, 50).map(float),
        "first_line": st.integers(1, 1000),
    }
)


def totals(*parts, **limits):
    result = Totals(**limits)
    for rows in parts:
        result.add(SYSTEM_CALLS.frame(rows))
    return result


@given(parts=st.lists(st.lists(ROWS, max_size=8), max_size=4))
def test_rows_of_parts_add_up(parts):
    calls, windows = defaultdict(lambda: [0, 0, 0.0, 1001]), defaultdict(lambda: [0, 0.0])
    for row in (row for rows in parts for row in rows):
        entry = calls[row["call"], row["path"], row["error"]]
        entry[0] += row["count"]
        entry[1] += row["timed"]
        entry[2] += row["duration_s"]
        entry[3] = min(entry[3], row["first_line"])
        if row["second"] is not None:
            window = windows[row["second"], row["call"], row["error"] != ""]
            window[0] += row["count"]
            window[1] += row["duration_s"]

    result = totals(*parts)

    assert {tuple(row[:3]): list(row[3:]) for row in result.calls.iter_rows()} == calls
    assert {tuple(row[:3]): list(row[3:]) for row in result.windows.iter_rows()} == windows


def missing(path, line):
    return {
        "second": 0,
        "call": "open",
        "path": path,
        "error": "ENOENT",
        "count": 2,
        "timed": 0,
        "duration_s": 0.0,
        "first_line": line,
    }


def test_later_paths_beyond_the_limit_are_counted_by_directory():
    rows = [missing(f"/lustre/sw/{number}.so", number) for number in range(100)]

    result = totals(rows, max_paths=10)

    assert result.calls.height == 6
    assert result.calls["path"].to_list()[:5] == [f"/lustre/sw/{number}.so" for number in range(5)]
    assert result.calls.row(5) == ("open", "/lustre/sw/", "ENOENT", 190, 0, 0.0, 5)


def test_many_directories_are_counted_by_the_first_component():
    rows = [missing(f"/lustre/{number}/x.so", number) for number in range(100)]

    result = totals(rows, [missing(None, 200)], max_paths=10)

    assert result.calls["path"].to_list()[5:] == ["/lustre/", None]
    assert result.calls["count"].sum() == 202


def test_few_paths_are_not_replaced():
    assert totals([missing("/a", 1)]).calls["path"].to_list() == ["/a"]
