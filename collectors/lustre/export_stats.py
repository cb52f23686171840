"""Lustre export statistics of MDTs: metadata operations of each client.

Source: docs/formats.md, "exports"; lustre/obdclass/lprocfs_status_server.c.
"""

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
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import EXPORT_COUNTERS, EXPORT_DELTAS

NOT_EXPORT_STATS = "not an export statistics line"
SECOND_BLOCK = "second statistics of the same MDT and NID"
NOT_NAMED = "no MDT and NID: use lctl get_param without -n"

_TARGET_AND_NID = r"^([^\s=]+?)\.exports\.([^\s=]+)$"
_KIND = stats.Kind(
    r"^mdt\.([^\s=]+?\.exports\.[^\s=]+)\.stats=",  # NIDs may contain dots and colons
    NOT_EXPORT_STATS,
    SECOND_BLOCK,
)


def parse(source: Source) -> Iterator[Parsed]:
    """Parse ``mdt.*.exports.*.stats`` as `lctl get_param` prints them.

    Yields:
        Parts with a frame of `tables.EXPORT_COUNTERS`: totals since the client connected first or
        its counters were cleared. Counters without operations are not printed and therefore null.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    for whole in stats.parts(source, _KIND):
        part, unnamed = whole.without(whole.unnamed(), NOT_NAMED)
        times, repeated_times = sift_moments(part.moments)
        operations = part.counters.filter(~pl.col("name").is_in(CONNECTIONS))
        readings, bad_readings = sift_readings(operations)
        clients = part.blocks.with_columns(
            target=pl.col("owner").str.extract(_TARGET_AND_NID, 1),
            nid=pl.col("owner").str.extract(_TARGET_AND_NID, 2),
        )
        yield assembled(
            totals(clocks(clients, times), readings).select(*EXPORT_COUNTERS.columns),
            lines=part.lines,
            accepted=part.titles + times.height + readings.height,
            rejected=[part.bad, unnamed, repeated_times, bad_readings],
        )


EXPORT_STATS = Format(
    name="exports",
    label="Lustre export statistics",
    table=EXPORT_COUNTERS,
    parse=lambda source, _: parse(source),
    scopes=("server", "filesystem"),
    options=(),  # increments need two reads of every client, which only the agent stores
    agent_inputs=("command",),
    agent_table=EXPORT_DELTAS,
)
