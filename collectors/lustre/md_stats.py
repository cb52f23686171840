"""Lustre md_stats of MDTs: what all clients together did on a target.

Source: docs/formats.md, "md_stats"; lustre/obdclass/lprocfs_status.c.
"""

from collections.abc import Iterator

import polars as pl

from collectors.lustre import stats
from collectors.lustre.counters import assembled, clocks, sift_moments, sift_readings, totals
from collectors.lustre.params import parameter_of
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import BYTES, TARGET_COUNTERS

NOT_MD_STATS = "not a line of md_stats"
SECOND_BLOCK = "belongs to a second md_stats of the same target"

_KIND = stats.Kind(parameter_of("mdt", "md_stats"), NOT_MD_STATS, SECOND_BLOCK)


def parse(source: Source) -> Iterator[Parsed]:
    """Read md_stats, with or without the framing of `lctl get_param`, of one or many MDTs.

    Yields:
        Parts whose table is `tables.TARGET_COUNTERS`: totals since mount or clear. Counters that
        were never hit are not printed, and so null.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    for part in stats.parts(source, _KIND):
        times, repeated_times = sift_moments(part.moments)
        readings, bad_readings = sift_readings(_readings(part.counters))
        blocks = part.blocks.rename({"of": "target"})
        yield assembled(
            totals(clocks(blocks, times), readings).select(*TARGET_COUNTERS.columns),
            lines=part.lines,
            accepted=part.titles + times.height + readings.height,
            rejected=[part.bad, repeated_times, bad_readings],
        )


def _readings(counters: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `counters.sift_readings`."""
    return counters.select(
        "line",
        "text",
        "row",
        "name",
        "samples",
        sum=pl.when(pl.col("name").is_in(BYTES) | (pl.col("unit") == "bytes")).then("sum"),
    )
