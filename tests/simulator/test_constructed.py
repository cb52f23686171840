"""Constructed input for benches: size and format as requested."""

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
def test_a_trace_has_the_requested_lines_clients_and_irregular_lines(trace, version):
    lines = trace(version=version).splitlines()
    matches = [RPC.fullmatch(line) for line in lines]
    regular = [match for match in matches if match and match["service"]]

    assert len(lines) == 20_000
    assert 0.04 < 1 - len(regular) / len(lines) < 0.06
    assert {line["nid"] for line in regular} == {f"{n}@gni" for n in range(300)}
    assert all((line["job"] is not None) == (version is Version.V2_15) for line in regular)


def test_the_tail_of_a_line_depends_on_the_version(trace):
    assert "Request procesed in" in trace()
    assert "Request processed in" in trace(version=Version.V2_15)


def test_a_trace_can_have_no_irregular_lines(trace):
    assert all(RPC.fullmatch(line) for line in trace(odd_share=0).splitlines())


def test_a_seed_gives_the_same_trace(trace):
    assert trace() == trace(name="again.log")
    assert trace() != trace(name="other.log", seed=2)


def test_counters_increase_between_polls(tmp_path):
    constructed.write_job_stats(tmp_path / "dumps", jobs=500, polls=2, seed=1)
    dumps = sorted((tmp_path / "dumps").iterdir())
    first, second = (job_stats(dump.read_text())["atlas2-MDT0000"] for dump in dumps)

    assert len(first) == 500
    assert first.keys() == second.keys()
    for job, (_, counters) in first.items():
        assert {name: 2 * count for name, count in counters.items()} == second[job][1]
