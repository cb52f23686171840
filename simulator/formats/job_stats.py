"""job_stats of Lustre 2.8 as ``lctl get_param`` prints them."""

from collections.abc import Iterable

from simulator.activity import MDT_KINDS
from simulator.counters import Entry

JOB_ID_CHARACTERS = 31  # Lustre cuts longer ids

_HEAD = "- job_id:          %s\n  snapshot_time:   %d\n"
_REQUESTS = "{ samples: %11d, unit:  reqs }\n"
_BYTES = "{ samples: %11d, unit: bytes, min:%8d, max:%8d, sum:%16d }\n"  # no blank after "min:"
_OST_IDLE_KINDS = (  # printed though they stay zero here
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


def _lines(form: str, kinds: Iterable[str]) -> str:
    return "".join(f"  {kind + ':':<17}{form}" for kind in kinds)


_MDT_ENTRY = _HEAD + _lines(_REQUESTS, MDT_KINDS)
_OST_ENTRY = (
    _HEAD + _lines(_BYTES, ("read_bytes", "write_bytes")) + _lines(_REQUESTS % 0, _OST_IDLE_KINDS)
)


def mdt(target: str, entries: Iterable[Entry]) -> str:
    """Return the dump of an MDT; an entry's counts are those of MDT_KINDS."""
    return f"mdt.{target}.job_stats=" + _body(_MDT_ENTRY, entries)


def ost(target: str, entries: Iterable[Entry]) -> str:
    """Return the dump of an OST; an entry's counts are those of counters.ost_sightings."""
    return f"obdfilter.{target}.job_stats=" + _body(_OST_ENTRY, entries)


def _body(form: str, entries: Iterable[Entry]) -> str:
    text = "".join(
        form % (entry.job_id[:JOB_ID_CHARACTERS], entry.snapshot_s, *entry.counts)
        for entry in entries
    )
    # lctl starts a new line for a value of several lines only.
    return f"\njob_stats:\n{text}" if text else "job_stats:\n"
