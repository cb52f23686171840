"""job_stats of Lustre 2.8 and 2.15 as ``lctl get_param`` prints them."""

import re
from collections.abc import Iterable

from simulator import site
from simulator.activity import MDT_KINDS
from simulator.formats import usecs
from simulator.formats.releases import is_timed
from simulator.servers.counters import Entry

JOB_ID_CHARACTERS = 31  # Lustre cuts longer ids

_HEAD = "- job_id:          %s\n  snapshot_time:   %d\n"
_REQUESTS = "{ samples: %11d, unit:  reqs }\n"
_BYTES = "{ samples: %11d, unit: bytes, min:%8d, max:%8d, sum:%16d }\n"  # no blank after "min:"
_OST_IDLE_KINDS = (  # printed with the value zero
    "getattr",
    "setattr",
    "punch",
    "sync",
    "destroy",
    "create",
    "statfs",
    "get_info",
    "set_info",
    "quotactl",
)

_TIMED_HEAD = (
    "- job_id:          %s\n"
    "  snapshot_time:   %d.%09d secs.nsecs\n"
    "  start_time:      %d.%09d secs.nsecs\n"
    "  elapsed_time:    %d.%09d secs.nsecs\n"
)
_TIMED = "{ samples: %11d, unit: %5s, min: %8d, max: %8d, sum: %16d, sumsq: %18d }\n"
_TIMED_IDLE_KINDS = (  # data on the MDT, which this site does not use
    ("read_bytes", "bytes"),
    ("write_bytes", "bytes"),
    ("read", "usecs"),
    ("write", "usecs"),
    ("punch", "usecs"),
    ("migrate", "usecs"),
    ("fallocate", "usecs"),
)
_PLAIN_ID = re.compile(r"[A-Za-z0-9.@_-]*")
_NANOSECONDS = 1_000_000_000


def _lines(form: str, kinds: Iterable[str]) -> str:
    return "".join(f"  {kind + ':':<17}{form}" for kind in kinds)


_MDT_ENTRY = _HEAD + _lines(_REQUESTS, MDT_KINDS)
_OST_ENTRY = (
    _HEAD + _lines(_BYTES, ("read_bytes", "write_bytes")) + _lines(_REQUESTS % 0, _OST_IDLE_KINDS)
)
_TIMED_KINDS = _lines(_TIMED, MDT_KINDS)
_TIMED_IDLE = "".join(
    f"  {kind + ':':<17}" + _TIMED % (0, unit, 0, 0, 0, 0) for kind, unit in _TIMED_IDLE_KINDS
)


def mdt(
    target: str,
    entries: Iterable[Entry],
    *,
    version: str = site.LUSTRE_VERSION,
    clock_offset_s: int = 0,
) -> str:
    """Return the dump of an MDT; an entry's counts follow MDT_KINDS."""
    entry_text = _timed_entry if is_timed(version) else _mdt_entry
    return f"mdt.{target}.job_stats=" + _body(
        entry_text(entry, clock_offset_s) for entry in entries
    )


def ost(target: str, entries: Iterable[Entry]) -> str:
    """Return the dump of an OST; an entry's counts follow counters.ost_sightings."""
    return f"obdfilter.{target}.job_stats=" + _body(
        _OST_ENTRY % (entry.job_id[:JOB_ID_CHARACTERS], entry.snapshot_s, *entry.counts)
        for entry in entries
    )


def _mdt_entry(entry: Entry, clock_offset_s: int) -> str:
    job_id = entry.job_id[:JOB_ID_CHARACTERS]
    return _MDT_ENTRY % (job_id, entry.snapshot_s + clock_offset_s, *entry.counts)


def _timed_entry(entry: Entry, clock_offset_s: int) -> str:
    begun = (entry.begun_s + clock_offset_s) * _NANOSECONDS + entry.begun_s * 7_919 % _NANOSECONDS
    elapsed = (entry.snapshot_s - entry.begun_s) * _NANOSECONDS + 1
    times = [divmod(moment, _NANOSECONDS) for moment in (begun + elapsed, begun, elapsed)]
    head = _TIMED_HEAD % (_quoted(entry.job_id[:JOB_ID_CHARACTERS]), *(n for t in times for n in t))
    counted = []
    slowdowns = entry.slowdowns or (1.0,) * len(MDT_KINDS)
    for kind, samples, slowdown in zip(MDT_KINDS, entry.counts, slowdowns, strict=True):
        took = usecs.times(kind, samples, slowdown)
        counted += [samples, "usecs", took.minimum, took.maximum, took.total, took.squares]
    return head + _TIMED_KINDS % tuple(counted) + _TIMED_IDLE


def _quoted(job_id: str) -> str:
    """Return an id as printed by 2.15.2 and later: quoted and escaped unless it is plain."""
    if _PLAIN_ID.fullmatch(job_id):
        return job_id
    escaped = re.sub(r"[^A-Za-z0-9.@_-]", lambda match: f"\\x{ord(match[0]):02X}", job_id)
    return f'"{escaped}"'


def _body(entries: Iterable[str]) -> str:
    text = "".join(entries)
    # lctl starts a new line only for a value of several lines.
    return f"\njob_stats:\n{text}" if text else "job_stats:\n"
