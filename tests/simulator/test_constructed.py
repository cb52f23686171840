"""Constructed input for benches: as much as was asked for, in the version's shape."""

import pytest

from simulator import constructed
from simulator.formats.rpctrace import Version
from tests.simulator.reading import RPC, job_stats


@pytest.fixture
def trace(tmp_path):
    def write(name="trace.log", **changes):
        options = {"lines": 20_000, "nids": 300, "odd_share": 0.05, "seed": 1}
        path = tmp_path / name
        constructed.write_rpctrace(path, **options | {"version": Version.V2_8} | changes)
        return path.read_text()

    return write


@pytest.mark.parametrize("version", Version)
def test_a_trace_has_the_lines_clients_and_irregular_lines_asked_for(trace, version):
    lines = trace(version=version).splitlines()
    found = [RPC.fullmatch(line) for line in lines]
    regular = [line for line in found if line and line["service"]]

    assert len(lines) == 20_000
    assert 0.04 < 1 - len(regular) / len(lines) < 0.06
    assert {line["nid"] for line in regular} == {f"{n}@gni" for n in range(300)}
    assert all((line["job"] is not None) == (version is Version.V2_15) for line in regular)


def test_versions_spell_the_tail_differently(trace):
    assert "Request procesed in" in trace()
    assert "Request processed in" in trace(version=Version.V2_15)


def test_a_trace_can_be_all_regular(trace):
    assert all(RPC.fullmatch(line) for line in trace(odd_share=0).splitlines())


def test_a_seed_gives_the_same_trace_again(trace):
    assert trace() == trace(name="again.log")
    assert trace() != trace(name="other.log", seed=2)


def test_counters_grow_from_poll_to_poll(tmp_path):
    dumps = []
    for poll in (0, 1):
        constructed.write_job_stats(tmp_path / "dump", jobs=500, poll=poll, seed=1)
        dumps.append(job_stats((tmp_path / "dump").read_text())["atlas2-MDT0000"])
    first, second = dumps

    assert len(first) == 500
    assert first.keys() == second.keys()
    for job, (_, counters) in first.items():
        assert {name: 2 * count for name, count in counters.items()} == second[job][1]
