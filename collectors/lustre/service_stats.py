"""Lustre service statistics: waiting times and counts of requests by type.

Source: docs/formats.md, "mds_stats"; lustre/ptlrpc/lproc_ptlrpc.c.
"""

from collections.abc import Iterator

import polars as pl

from collectors.format import Format
from collectors.lustre import stats
from collectors.lustre.counters import REPEATED, TOO_BIG, assembled, clocks, sift_moments
from collectors.lustre.params import parameter_of
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import SERVICE_COUNTERS, SERVICE_UNITS

NOT_SERVICE_STATS = "not a service stats line"
SECOND_BLOCK = "second stats of the same service"
OTHER_STATISTICS = (
    "statistics without req_waittime, so not of a service: load the output of "
    "lctl get_param 'mds.MDS.*.stats'"
)
WAIT = "req_waittime"  # counts every handled request of a service

SERVICES = r"mds\.MDS|ost\.OSS|mgs\.MGS|ldlm\.services"  # prefixes of their parameters

_KIND = stats.Kind(
    parameter_of(SERVICES, "stats"),
    NOT_SERVICE_STATS,
    SECOND_BLOCK,
)
# Thread-name bases of services whose parameter has another name.
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
# Plausible maxima; sums over many services still fit 64 bits.
_SAMPLES = 2**53 - 1
_VALUE = 2**60 - 1


def parse(source: Source) -> Iterator[Parsed]:
    """Parse statistics of a server's services, with or without the framing of `lctl get_param`.

    Yields:
        Parts with a frame of `tables.SERVICE_COUNTERS`. Lustre omits counters without requests; a
        service without any counter gets one row, `req_waittime` with zero samples, unless one of
        its lines is unreadable: its counters are then unknown.

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
            service=pl.col("owner").replace(THREADS),
            counted_since="entry_started_at",
        )
        unreadable = pl.concat([part.bad["row"], bad_readings["row"]])
        rows = services.join(readings, on="row", how="left", maintain_order="left_right").filter(
            pl.col("counter").is_not_null() | ~pl.col("row").is_in(unreadable.implode())
        )
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
    """Return the rows of unnamed blocks with counters but without `WAIT`."""
    services = part.counters.filter(name=WAIT)["row"].implode()
    others = part.counters.filter(~pl.col("row").is_in(services))
    return others.filter(pl.col("row").is_in(part.unnamed().implode()))["row"]


def _sifted(counters: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the valid readings, numbers as Int64, and the rejected ones with the reason."""
    samples, *values = (
        pl.col(name).cast(pl.Int64, strict=False) for name in ("samples", "min", "max", "sum")
    )
    is_plausible = (samples <= _SAMPLES) & pl.all_horizontal(value <= _VALUE for value in values)
    unit = pl.col("unit").replace(_SPELLINGS)
    # All counters of services have these; counters of other statistics may not.
    is_whole = pl.all_horizontal(pl.col("min", "max", "sum").is_not_null())
    checked = counters.with_columns(
        reason=pl.when(~is_whole)
        .then(pl.lit(NOT_SERVICE_STATS))
        .when(~unit.is_in(SERVICE_UNITS))
        .then("unknown unit " + pl.col("unit").str.head(_SHOWN_CHARACTERS))
        .when(~is_plausible.fill_null(value=False))
        .then(pl.lit(TOO_BIG))
        .when(~pl.struct("row", "name").is_first_distinct())
        .then(pl.lit(REPEATED)),
    )
    good = checked.filter(pl.col("reason").is_null()).select(
        "line",
        "row",
        unit,
        samples,
        *values,
        counter="name",
    )
    return good, checked.filter(pl.col("reason").is_not_null())


SERVICE_STATS = Format(
    name="mds_stats",
    label="Lustre service statistics",
    table=SERVICE_COUNTERS,
    parse=lambda source, _: parse(source),
    scopes=("server",),
    options=("server", "filesystem", "service", "at"),
    agent_inputs=("command",),
)
