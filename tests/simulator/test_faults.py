"""Faults on demand appear in the raw files."""

from itertools import pairwise

import pytest

from simulator import demo, faults
from simulator.clock import local
from simulator.faults import Faults
from simulator.plan import Plan
from tests.simulator.reading import job_stats, read_time

DAY = (local(2017, 3, 6), local(2017, 3, 7))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a function that writes a day with faults."""

    def write(*texts):
        out = tmp_path_factory.mktemp("day")
        requested = Faults(tuple(map(faults.parse, texts)))
        demo.write(Plan(1, *DAY, rate=0.1, poll_s=1_800, faults=requested), out)
        return out

    return write


def waits(folder):
    moments = sorted(read_time(path).timestamp() for path in folder.iterdir())
    return [after - before for before, after in pairwise(moments)]


def test_a_gap_and_a_lost_source_have_no_reads(files):
    out = files("gap@2017-03-06T08:00/3h", "lost:atlas2-oss2@2017-03-06T14:00/4h")

    assert sorted(waits(out / "job_stats" / "atlas2-MDT0000"))[-2:] == [1_800, 3 * 3_600]
    assert sorted(waits(out / "job_stats" / "atlas2-oss1"))[-2:] == [1_800, 3 * 3_600]
    assert sorted(waits(out / "job_stats" / "atlas2-oss2"))[-2:] == [3 * 3_600, 4 * 3_600]


def test_a_clock_jumps_forward_and_back(files):
    out = files("clock:atlas2-mds1@2017-03-06T06:00/6h,-500")

    jumped = []
    for path in sorted((out / "job_stats" / "atlas2-MDT0000").iterdir()):
        entries = job_stats(path.read_text())["atlas2-MDT0000"].values()
        newest = max((updated for updated, _ in entries), default=0)
        if read_time(path).timestamp() - newest >= 500:
            jumped.append(read_time(path).timestamp() - DAY[0])
    assert min(jumped) // 3_600 == 6
    assert max(jumped) // 3_600 == 11
    assert len(jumped) == 12


def test_an_upgraded_server_has_another_format_and_new_counters(files):
    out = files("upgrade:atlas2-mds1@2017-03-06T12:00,2.15.3")
    reads = sorted((out / "job_stats" / "atlas2-MDT0000").iterdir())
    texts = [path.read_text() for path in reads]

    timed = ["start_time:" in text and "unit: usecs" in text for text in texts]
    assert timed == sorted(timed)
    assert sum(timed) == 25
    assert '"kworker\\x2F3\\x3A1.0"' in texts[-1]
    whole = [path.read_text() for path in sorted((out / "md_stats" / "atlas2-MDT0000").iterdir())]
    assert "[reqs]" in whole[0]
    assert "[usecs]" in whole[-1]
    assert int(whole[-1].split("open ")[1].split()[0]) < 10_000_000  # billions before
    assert "2.15.3" in (out / "site.toml").read_text()


@pytest.mark.parametrize("text", ["flood@2017-03-06T12:00", "gap", "gap@2017-03-06T12:00/3x"])
def test_an_invalid_fault_is_refused(text):
    with pytest.raises(ValueError, match="is not a fault"):
        faults.parse(text)
