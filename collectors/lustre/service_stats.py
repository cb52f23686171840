"""Lustre's statistics of services: how long requests waited, how many there were, of which kind.

Source: docs/formats.md, "mds_stats"; lustre/ptlrpc/lproc_ptlrpc.c.
"""

from collections.abc import Iterator

import polars as pl

from collectors.lustre import stats
from collectors.lustre.counters import REPEATED, TOO_BIG, assembled, clocks, sift_moments
from collectors.lustre.params import parameter_of
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import SERVICE_COUNTERS, SERVICE_UNITS

NOT_SERVICE_STATS = "not a line of a service's stats"
SECOND_BLOCK = "belongs to a second stats of the same service"
OTHER_STATISTICS = (
    "statistics without req_waittime, so not of a service: load the output of "
    "lctl get_param 'mds.MDS.*.stats'"
)
WAIT = "req_waittime"  # every request that a service takes in hand is counted by it

SERVICES = r"mds\.MDS|ost\.OSS|mgs\.MGS|ldlm\.services"  # what their parameters begin with

_KIND = stats.Kind(
    parameter_of(SERVICES, "stats"),
    NOT_SERVICE_STATS,
    SECOND_BLOCK,
)
# What a service's threads are called, where that is not its parameter's name.
THREADS = {
    "mdt_readpage": "mdt_rdpg",
    "mdt_setattr": "mdt_attr",
    "mgs": "ll_mgs",
    "ost": "ll_ost",
    "ost_io": "ll_ost_io",
    "ost_create": "ll_ost_create",
    "ost_seq": "ll_ost_seq",
    "ost_out": "ll_ost_out",
    "ldlm_canceld": "ldlm_cn",
    "ldlm_cbd": "ldlm_cb",
}
_SPELLINGS = {"usecs": "usec", "secs": "sec"}
_SHOWN_CHARACTERS = 40
# Larger numbers are not believed; these leave room to add up what many services count.
_SAMPLES = 2**53 - 1
_VALUE = 2**60 - 1


def parse(source: Source) -> Iterator[Parsed]:
    """Read the statistics of a server's services, with or without the framing of `lctl get_param`.

    Yields:
        Parts whose table is `tables.SERVICE_COUNTERS`. Counters that were never hit are not
        printed; a service that printed none has one row, of no requests that waited.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    for whole in stats.parts(source, _KIND):
        part, other = whole.without(_other_statistics(whole), OTHER_STATISTICS)
        times, repeated_times = sift_moments(part.moments)
        readings, bad_readings = _sifted(part.counters)
        services = clocks(part.blocks, times).select(
            "row",
            "snapshot_at",
            block="line",
            service=pl.col("of").replace(THREADS),
            counted_since="entry_started_at",
        )
        rows = services.join(readings, on="row", how="left", maintain_order="left_right")
        yield assembled(
            rows.with_columns(
                line=pl.coalesce("line", "block"),
                counter=pl.coalesce("counter", pl.lit(WAIT)),
                unit=pl.coalesce("unit", pl.lit("usec")),
                **{name: pl.col(name).fill_null(0) for name in ("samples", "min", "max", "sum")},
            ).select(*SERVICE_COUNTERS.columns),
            lines=part.lines,
            accepted=part.titles + times.height + readings.height,
            rejected=[part.bad, other, repeated_times, bad_readings],
        )


def _other_statistics(part: stats.Part) -> pl.Series:
    """Return the rows of unnamed blocks in which something was handled that never waited."""
    services = part.counters.filter(name=WAIT)["row"].implode()
    others = part.counters.filter(~pl.col("row").is_in(services))
    return others.filter(pl.col("row").is_in(part.unnamed().implode()))["row"]


def _sifted(counters: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the readings to store, their numbers as Int64, and those to reject with the reason."""
    samples, *values = (
        pl.col(name).cast(pl.Int64, strict=False) for name in ("samples", "min", "max", "sum")
    )
    believed = (samples <= _SAMPLES) & pl.all_horizontal(value <= _VALUE for value in values)
    unit = pl.col("unit").replace(_SPELLINGS)
    # All counters of services keep these; those of other statistics do not.
    is_whole = pl.all_horizontal(pl.col("min", "max", "sum").is_not_null())
    judged = counters.with_columns(
        reason=pl.when(~is_whole)
        .then(pl.lit(NOT_SERVICE_STATS))
        .when(~unit.is_in(SERVICE_UNITS))
        .then("unknown unit " + pl.col("unit").str.head(_SHOWN_CHARACTERS))
        .when(~believed.fill_null(value=False))
        .then(pl.lit(TOO_BIG))
        .when(~pl.struct("row", "name").is_first_distinct())
        .then(pl.lit(REPEATED)),
    )
    good = judged.filter(pl.col("reason").is_null()).select(
        "line",
        "row",
        unit,
        samples,
        *values,
        counter="name",
    )
    return good, judged.filter(pl.col("reason").is_not_null())
