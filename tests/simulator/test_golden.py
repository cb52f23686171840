"""The golden trace against the reports' listing, counted by awk."""

import pytest

from tests.simulator.reading import alps_lines, awk, unfold

# Opcode: count, min, average and max service time in microseconds, as in the listing.
LISTING = {
    9205593: {
        "101": (37851, 13, 42, 4983),
        "103": (611, 10, 16, 32),
        "35": (277, 15, 20, 38),
        "37": (154, 170, 292, 671),
        "49": (86, 15, 21, 65),
        "33": (30, 16, 20, 27),
        "36": (3, 103, 136, 196),
        "all": (39012, 10, 42, 4983),
    },
    9205355: {
        "101": (8445, 16, 41, 780),
        "35": (92, 15, 23, 52),
        "37": (55, 189, 291, 534),
        "103": (52, 12, 16, 25),
        "49": (41, 16, 20, 27),
        "33": (13, 16, 21, 38),
        "all": (8698, 12, 42, 780),
    },
}
RATES = {
    9205593: "69291.96 67229.83 1085.24 492.00 273.53 152.75 53.29 5.33",
    9205355: "15449.13 14999.76 163.41 97.69 92.36 72.82 23.09",
}
NODES = {9205593: 300, 9205355: 62}

# Reads the launch's NIDs first, then the trace; prints opcode, count, min, sum, max.
SUMMARY = r"""
    NR == FNR { mine[$1]; next }
    /Handled RPC/ {
        match($0, /12345-[0-9]+@gni:[0-9]+/)
        split(substr($0, RSTART + 6, RLENGTH - 6), target, ":")
        if (!(target[1] in mine)) next
        match($0, /procesed in [0-9]+us/)
        took = substr($0, RSTART + 12, RLENGTH - 14) + 0
        nids[target[1]]
        split(target[2] " all", keys, " ")
        for (k in keys) {
            key = keys[k]
            if (!(key in count) || took < minimum[key]) minimum[key] = took
            if (took > maximum[key]) maximum[key] = took
            count[key]++; sum[key] += took
        }
    }
    END {
        for (key in count) print key, count[key], minimum[key], sum[key], maximum[key]
        for (nid in nids) nodes++
        print "nodes", nodes
    }
"""
EXTENT = r"""
    /Handled RPC/ {
        split($0, part, ":")
        split(part[4], time, ".")
        us = (time[1] - 1499000000) * 1000000 + time[2]
        if (!first || us < first) first = us
        if (us > last) last = us
    }
    END { printf "%d\n", last - first }
"""


def nids_of(folder, apid):
    start = next(line for line in alps_lines(folder) if int(line["apid"]) == apid)
    return [f"{node}@gni" for node in unfold(start["nodes"])]


@pytest.mark.parametrize("apid", LISTING)
def test_awk_counts_equal_the_listing(centre, tmp_path, apid):
    nids = tmp_path / "nids"
    nids.write_text("\n".join(nids_of(centre / "alps", apid)) + "\n")

    rows = [line.split() for line in awk(SUMMARY, nids, centre / "rpctrace" / "golden.log")]

    counted = {key: tuple(map(int, values)) for key, *values in rows}
    assert counted.pop("nodes") == (NODES[apid],)
    assert counted.keys() == LISTING[apid].keys()
    for key, (count, minimum, average, maximum) in LISTING[apid].items():
        counted_count, counted_minimum, counted_sum, counted_maximum = counted[key]
        assert (counted_count, counted_minimum, counted_maximum) == (count, minimum, maximum), key
        # The same figure with any rounding to whole microseconds.
        assert counted_sum // counted_count == round(counted_sum / counted_count) == average, key


def test_the_trace_lasts_563009_microseconds(centre):
    assert awk(EXTENT, centre / "rpctrace" / "golden.log") == ["563009"]


@pytest.mark.parametrize("apid", LISTING)
def test_the_extent_gives_the_printed_rates(apid):
    counts = sorted((row[0] for row in LISTING[apid].values()), reverse=True)

    rates = [f"{count / 0.563009:.2f}" for count in counts]

    # 69,291.9651 was printed as .96: the only figure that the extent in whole microseconds misses.
    assert [rate.replace("69291.97", "69291.96") for rate in rates] == RATES[apid].split()
