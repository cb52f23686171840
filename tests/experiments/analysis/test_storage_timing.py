import io
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.experiments import cmssw_log
from collectors.source import Source
from ioportal.experiments.analysis.storage_timing import (
    Timing,
    combined,
    comparison,
    counter_keys,
    timing,
)
from ioportal.experiments.analysis.timing_observations import observations

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cmssw_log"
MIB = 2**20


def logged(name, title):
    """Return the timing of a fixture."""
    text = (FIXTURES / f"{name}.log").read_bytes()
    [parsed] = cmssw_log.parse(Source(io.BytesIO(text), name))
    [row] = parsed.table.to_dicts()
    metrics = {each["name"]: each["value"] for each in row["metrics"]}
    return timing(title, row["counters"], metrics, row["events"])


@pytest.fixture(scope="module")
def cern():
    return [logged("cern_original", "original"), logged("cern_improved", "improved")]


@pytest.fixture(scope="module")
def fnal():
    return [logged("fnal_original", "original"), logged("fnal_improved", "improved")]


@pytest.fixture(scope="module")
def ral():
    return [
        logged("ral_original", "original"),
        logged("ral_coalescing", "read coalescing"),
        logged("ral_lazy_download", "lazy download"),
    ]


def values(timings):
    return {row.figure.name: row.values for row in comparison(timings)}


def text(timings, words):
    """Return the only observation with some words."""
    [only] = [each for each in observations(timings) if words in each]
    return only


def test_the_figures_of_cern(cern):
    figures = values(cern)

    assert figures["wall_s"] == pytest.approx((838.683, 713.148))
    assert figures["read_operations"] == (63_143, 22_416)
    assert figures["read_bytes"] == pytest.approx((540.754 * MIB, 805.870 * MIB))
    assert figures["read_s"] == pytest.approx((200.315, 71.7471))
    assert figures["read_share"] == pytest.approx((0.2388, 0.1006), abs=1e-4)
    assert figures["mean_read_s"] == pytest.approx((3.172e-3, 3.201e-3), abs=1e-6)
    assert figures["coalescing"] == pytest.approx((1, 78_246 / 22_416))
    assert figures["cache_hit_share"] == (None, pytest.approx(55_830 / 59_856))
    assert text(cern, "wall time changed") == (
        "From original to improved, wall time changed by \N{MINUS SIGN}125.5 s and time in reads "
        "by \N{MINUS SIGN}128.6 s: reads explain the difference."
    )


def test_the_figures_of_ral(ral):
    figures = values(ral)
    ratios = {row.figure.name: row.ratios for row in comparison(ral)}

    assert figures["wall_s"] == (725.73, 674.95, 664.70)
    assert figures["read_operations"] == (63_143, 22_416, 10)
    assert figures["read_bytes_per_s"][2] / MIB == pytest.approx(1_169.41 / 18.01)
    assert figures["wasted_bytes"] == (
        0,
        None,  # the tree cache counts its own reads
        pytest.approx((1_169.41 - 540.754) * MIB),
    )
    assert figures["prefetch_hit_share"] == (None, None, pytest.approx(59_829 / 59_856))
    assert figures["vector_reads"] == (0, 29, 0)
    assert ratios["read_operations"] == pytest.approx((1, 0.355, 0.00016), abs=1e-3)
    assert ratios["read_bytes"] == pytest.approx((1, 1.490, 2.163), abs=1e-3)


def test_shares_follow_from_the_file_without_the_parser(ral):
    """Recompute the share of time in reads from the text of the logs."""
    for name, each in zip(
        ("ral_original", "ral_coalescing", "ral_lazy_download"), ral, strict=True
    ):
        text = (FIXTURES / f"{name}.log").read_text()
        [ms] = re.findall(r"'rfio' counter-name='read' .*total-msecs='([\d.]+)'", text)
        [wall] = re.findall(r"^real +([\d.]+)s", text, re.MULTILINE)
        assert each.figures["read_share"] == pytest.approx(float(ms) / 1_000 / float(wall))


def test_an_implausible_throughput_is_pointed_out(ral):
    assert text(ral, "plausible").startswith(
        "Doubt: lazy download read at 65 MiB/s (68 MB/s), above the 50 MB/s"
    )
    assert not any("plausible" in each for each in observations(ral, 100e6))


def test_equal_cpu_times_show_that_the_difference_is_waiting(ral):
    assert text(ral, "CPU times") == (
        "CPU times agree (631.1 s to 636.1 s) while wall times range from 664.7 s to 725.7 s: the "
        "difference is waiting, not computing."
    )


def test_a_repeated_block_supports_no_conclusion(fnal):
    identical, missing, events = (each for each in observations(fnal) if each.startswith("Doubt"))

    assert "original has no counters open of dcap" in missing
    assert "The number of events is not in the files of original, improved." in events
    assert identical == (
        "Doubt: original and improved have identical counters, to the last digit of their times, "
        "but wall times of 621.4 s and 604.8 s. One block repeats the other: no conclusion on "
        "storage is possible."
    )
    assert "wall time changed" not in " ".join(observations(fnal))


def test_equal_reads_at_two_sites_exclude_another_number_of_events(cern, ral):
    assert text([cern[1], ral[1]], "same number of reads") == (
        "improved and read coalescing have the same number of reads (22,416) and bytes: a "
        "different number of events does not explain their difference. A read took 3.2 ms and "
        "1.25 ms: the difference lies in the storage or the network."
    )


def counter(subsystem, name, operations=1, successes=None, size=0.0, total_s=0.0):
    return {
        "subsystem": subsystem,
        "counter": name,
        "operations": operations,
        "successes": operations if successes is None else successes,
        "bytes": size,
        "total_s": total_s,
        "min_s": 0.0,
        "max_s": total_s,
    }


def test_reads_are_compared_per_event():
    arms = [
        timing(f"arm {events}", [counter("root", "read", size=1e6)], {"job_s": 10}, events)
        for events in (10_000, 8_000)
    ]

    assert values(arms)["reads_per_event"] == (1e-4, 1.25e-4)


def test_failed_opens_and_too_much_time_are_pointed_out():
    one = timing(
        "run",
        [counter("dcap", "open", 2, 0), counter("dcap", "read", 5, size=1.0, total_s=20)],
        {"wall_s": 10.0},
    )

    assert text([one], "failed") == "Doubt: run: 2 of 2 operations dcap open failed."
    assert text([one], "storage calls") == (
        "Doubt: run spent 200% of its wall time in storage calls: calls ran concurrently, or the "
        "times belong to another run."
    )


def test_vector_reads_of_the_protocol_are_no_reads_of_the_layer_above():
    one = timing(
        "run",
        [
            counter("root", "read", 18, size=7.5 * MIB),
            counter("root", "readv", 25, size=304.25 * MIB),
            counter("tstoragefile", "read", 18, size=7.5 * MIB),
        ],
        {},
    )

    assert (one.read_operations, one.read_bytes) == (43, 311.75 * MIB)
    names = ("vector_reads", "coalescing", "wasted_bytes")
    assert [one.figures[name] for name in names] == [25, None, None]


def test_layers_are_never_added_up(cern):
    totals = [each.read_bytes for each in cern]
    above = [each.counter("tstoragefile", "read").bytes for each in cern]

    assert totals == pytest.approx([540.754 * MIB, 805.87 * MIB])
    assert above == pytest.approx([540.754 * MIB, 1_254.42 * MIB])


def test_runs_of_an_arm_are_combined_by_their_means(ral):
    arm = combined("arm", [ral[0], ral[0], ral[1]])

    assert arm.runs == 3
    assert arm.wall_s == pytest.approx((2 * 725.73 + 674.95) / 3)
    assert arm.read_operations == pytest.approx((2 * 63_143 + 22_416) / 3)
    assert arm.counter("rfio", "read").max_s == pytest.approx(0.221464)
    assert arm.counter("tstoragefile", "read-via-cache").operations == 59_856


def test_unused_counters_are_left_out_and_layers_come_first(ral):
    keys = counter_keys(ral)

    assert ("rfio", "readv") not in keys
    assert [subsystem for subsystem, _ in keys] == ["tstoragefile"] * (len(keys) - 1) + ["rfio"]


@given(
    counters=st.lists(
        st.builds(
            counter,
            st.sampled_from(["root", "file", "tstoragefile", "tfile"]),
            st.sampled_from(["read", "readv", "open", "read-via-cache"]),
            st.none() | st.integers(0, 10**9),
            st.none() | st.integers(0, 10**9),
            st.none() | st.floats(0, 1e15),
            st.none() | st.floats(0, 1e9),
        )
    ),
    metrics=st.dictionaries(st.sampled_from(["wall_s", "user_s", "sys_s"]), st.floats(0, 1e9)),
)
@example(counters=[counter("file", "read", 1, 1, 1e15, 1e-310)], metrics={})
def test_any_counters_give_figures_and_observations(counters, metrics):
    one = timing("one", counters, metrics)
    other = Timing("other", {})

    assert all(value is None or value >= 0 for value in one.figures.values())
    assert observations([one, other]) is not None
    assert all(row.ratios[0] in {None, 1} for row in comparison([one, other]))
