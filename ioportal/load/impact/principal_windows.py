"""The input of `ioportal.load.analysis.waiting`, read from attributed 10 s windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from psycopg import sql

from ioportal.load.analysis.waiting import WINDOWS
from ioportal.load.impact import job_groups
from ioportal.site import process_names
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import Method, Principal

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.load.top_consumers import PrincipalKey

_OF_PRINCIPALS = sql.SQL("""
SELECT start, server_id, service_id, opcode,
    CASE
        WHEN kind = %(CONTRADICTED)s THEN %(HOST)s
        WHEN kind = %(JOB)s AND method = %(JOB_ID_ALONE)s THEN %(CLAIMED)s
        ELSE kind
    END,
    CASE kind WHEN %(JOB)s THEN job_id
        WHEN %(PROCESS)s THEN (SELECT {key} FROM site_sourcejobid s WHERE s.id = source_job_id)
        WHEN %(HOST)s THEN nid_id WHEN %(CONTRADICTED)s THEN nid_id ELSE 0 END,
    timed, service_us_sum, total_us_sum
FROM telemetry_attributedrpc
WHERE server_id = ANY(%(servers)s) AND start >= %(start)s AND start < %(end)s
""").format(key=sql.SQL(process_names.KEY_OF_TEXT))
_COLUMNS = {
    "start": WINDOWS["start"],
    **dict.fromkeys(("server", "service", "opcode", "kind", "key"), pl.Int64()),
    **{name: WINDOWS[name] for name in ("timed", "service_us_sum", "total_us_sum")},
}


# The name of a principal in replays, of columns kind and key.
NAME = pl.concat_str("kind", pl.lit(":"), "key").alias("principal")
# The principal of what a job's id claims, of the column principal with the job's.
CLAIM = pl.col("principal").str.replace(f"^{Principal.JOB.value}:", f"{Principal.CLAIMED.value}:")


def windows(server_ids: Collection[int], start: datetime, end: datetime) -> pl.DataFrame:
    """Return the windows of servers that start in [start, end), by principal."""
    kinds = {kind.name: kind.value for kind in Principal}
    values: dict[str, Any] = {**kinds, "servers": list(server_ids), "start": start, "end": end}
    values["JOB_ID_ALONE"] = Method.JOB_ID_ALONE.value
    rows = read_frame(_OF_PRINCIPALS, _COLUMNS, values)
    return rows.with_columns(NAME).select(pl.col(name).cast(kind) for name, kind in WINDOWS.items())


def members(windows: pl.DataFrame) -> pl.DataFrame:
    """Return the groups of the jobs in some windows: columns of `load.analysis.waiting.MEMBERS`.

    The names of processes are all of one source, because any process can change its name.
    """
    names = windows["principal"].unique()
    keys = list(map(principal_key, names))
    jobs, claimed = (
        job_groups.members([key for kind, key in keys if kind == wanted])
        for wanted in (Principal.JOB, Principal.CLAIMED)
    )
    claims = claimed.with_columns(CLAIM, is_claim=pl.lit(value=True))
    is_process = names.str.starts_with(f"{Principal.PROCESS.value}:")
    processes = names.filter(is_process).to_frame("principal")
    source = pl.lit(str(Principal.PROCESS.value))
    return pl.concat([jobs, claims, processes.with_columns(source=source)], how="diagonal")


def principal_name(principal: PrincipalKey) -> str:
    """Return the name of a principal in replays."""
    kind, key = principal
    return f"{kind:d}:{key}"


def principal_key(principal: str) -> PrincipalKey:
    """Return the principal of a window."""
    kind, _, which = principal.partition(":")
    return int(kind), int(which)
