"""Lustre md_stats of MDTs: operations of all clients on a target.

Source: docs/formats.md, "md_stats"; lustre/obdclass/lprocfs_status.c.
"""

import re
from collections.abc import Iterator

import polars as pl

from collectors.format import Format
from collectors.lustre import stats
from collectors.lustre.counters import (
    CONNECTIONS,
    assembled,
    clocks,
    sift_moments,
    sift_readings,
    totals,
)
from collectors.lustre.params import parameter_of
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import TARGET_COUNTERS, TARGET_DELTAS

NOT_MD_STATS = "not an md_stats line"
SECOND_BLOCK = "second md_stats of the same target"

OTHER_STATISTICS = (
    "statistics of one client (exports.*.stats) or of a target (*.stats), not md_stats: "
    "load the output of lctl get_param 'mdt.*.md_stats'"
)

_KIND = stats.Kind(parameter_of("mdt", "md_stats"), NOT_MD_STATS, SECOND_BLOCK)
_EXPORT_FILE = re.compile(r"exports.*@\w+", re.DOTALL)  # a file of one client, named by its NID


def parse(source: Source) -> Iterator[Parsed]:
    """Parse md_stats of one or many MDTs, with or without the framing of `lctl get_param`.

    Yields:
        Parts with a frame of `tables.TARGET_COUNTERS`: totals since mount or clear. Counters
        without operations are not printed and therefore null.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    is_export = bool(_EXPORT_FILE.search(source.name))
    for whole in stats.parts(source, _KIND):
        rows = _other_statistics(whole, is_export=is_export)
        part, other = whole.without(rows, OTHER_STATISTICS)
        times, repeated_times = sift_moments(part.moments)
        readings, bad_readings = sift_readings(part.counters)
        blocks = part.blocks.rename({"owner": "target"})
        yield assembled(
            totals(clocks(blocks, times), readings).select(*TARGET_COUNTERS.columns),
            lines=part.lines,
            accepted=part.titles + times.height + readings.height,
            rejected=[part.bad, other, repeated_times, bad_readings],
        )


def _other_statistics(part: stats.Part, *, is_export: bool) -> pl.Series:
    """Return the rows of blocks that are not md_stats; only unnamed blocks are checked."""
    unnamed = part.unnamed()
    if is_export:
        return unnamed
    counters = part.counters.filter(pl.col("row").is_in(unnamed.implode()))
    return counters.filter(pl.col("name").is_in(CONNECTIONS))["row"]


MD_STATS = Format(
    name="md_stats",
    label="Lustre md_stats",
    table=TARGET_COUNTERS,
    parse=lambda source, _: parse(source),
    scopes=("server", "filesystem"),
    options=("target", "filesystem", "at", "register_targets"),
    agent_inputs=("command",),
    agent_table=TARGET_DELTAS,
)
