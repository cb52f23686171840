"""Reading roll-ups piecewise: the finer level is read where a coarser one is dirty."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db import connection
from psycopg import sql

from ioportal.telemetry import buckets, coverage, levels, retention
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import DirtyIo, DirtyRpcs
from ioportal.telemetry.rollups import IO_WIDTH, RPC_ROLL_UPS, SUMS
from ioportal.telemetry.sums import expressions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ioportal.telemetry.levels import Level

_MAX_PIECES = 8
_RE_ADDED = sql.SQL("""
SELECT {sums} FROM {table} WHERE start >= %(start)s AND start < %(end)s
""")
_SUM_LABELS = ("RPCs", "timed RPCs", "µs of service time", "µs from arrival to end")  # of `SUMS`


@dataclass(frozen=True)
class Piece:
    """A part of a range, and the level to read for it."""

    level: Level
    start: datetime
    end: datetime


def pieces(level: Level, start: datetime, end: datetime) -> list[Piece]:
    """Return the pieces to read for the rows of a level in [start, end), whole buckets.

    The finer level is read where the level is dirty, so every row is counted exactly once.
    """
    if start >= end:
        return []
    if level.made_of is None or not level.is_roll_up:
        return [Piece(level, start, end)]
    open_spans = _open(level, start, end)
    settled = coverage.gaps(open_spans, start, end)
    finer = (pieces(level.made_of, *span) for span in open_spans)
    return [*(Piece(level, *span) for span in settled), *chain.from_iterable(finer)]


def coarsest_pieces(hierarchy: Sequence[Level], start: datetime, end: datetime) -> list[Piece]:
    """Return the pieces to read for sums over [start, end): coarse inside, finer at the edges.

    Args:
        hierarchy: levels, finest first, each with buckets that fill the buckets of the next.
        start: a bucket boundary of the finest level.
        end: a bucket boundary of the finest level.
    """
    *finer, coarsest = hierarchy
    if not finer:
        return pieces(coarsest, start, end)
    begin, stop = buckets.ceil(start, coarsest.width), buckets.floor(end, coarsest.width)
    if begin >= stop:
        return coarsest_pieces(finer, start, end)
    edges = (*coarsest_pieces(finer, start, begin), *coarsest_pieces(finer, stop, end))
    return [*pieces(coarsest, begin, stop), *edges]


def _open(level: Level, start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of a range in which a level is dirty."""
    if level in {levels.IO_TEN_MINUTES, levels.IO_TOTALS}:
        width = IO_WIDTH
        dirty: Any = DirtyIo.objects.filter(target_id__isnull=False)
    else:
        (kind,) = (kind for kind in RPC_ROLL_UPS if level in kind.levels)
        width = kind.width
        dirty = DirtyRpcs.objects.filter(level__lte=kind.pending, server_id__isnull=False)
    rows = dirty.filter(start__lt=end, end__gt=start).values_list("start", "end")
    whole = [
        Interval(max(span.start, start), min(span.end, end))
        for span in buckets.divided([Interval(*row) for row in rows], width, end)[0]
        if span.end > start
    ]
    return whole if len(whole) <= _MAX_PIECES else [Interval(whole[0].start, whole[-1].end)]


def discrepancies(start: datetime, end: datetime) -> list[str]:
    """Compare the roll-ups of [start, end) with the attributed windows, where all are retained.

    Returns:
        A sentence for every sum that differs.
    """
    sentences = []
    for kind in RPC_ROLL_UPS:
        whole = (buckets.floor(start, kind.width), buckets.ceil(end, kind.width))
        for level in kind.levels:
            for part in retention.retained((levels.ATTRIBUTED_RPCS, level), *whole):
                windows = _re_added(Piece(levels.ATTRIBUTED_RPCS, *part))
                read = map(_re_added, pieces(level, *part))
                rolled = [sum(sums) for sums in zip(*read, strict=True)]
                sentences += [
                    f"{level.table}: {attributed} {label} attributed from {part.start} to "
                    f"{part.end}, {added} rolled up"
                    for label, attributed, added in zip(_SUM_LABELS, windows, rolled, strict=True)
                    if attributed != added
                ]
    return sentences


def _re_added(piece: Piece) -> list[int]:
    sums = sql.SQL(", ").join(expressions("coalesce(sum({}), 0)", SUMS).values())
    with connection.cursor() as cursor:
        cursor.execute(
            _RE_ADDED.format(sums=sums, table=sql.Identifier(piece.level.table)),
            {"start": piece.start, "end": piece.end},
        )
        return list(map(int, cursor.fetchone()))
