"""Counters of a Linux NFS server since it booted: calls by procedure, and bytes.

Source: docs/formats.md, "nfsd"; fs/nfsd/stats.c and net/sunrpc/stats.c of Linux.
"""

from collections.abc import Iterator
from itertools import islice

from collectors.batch.records import PART_LINES, Row, numbered_lines
from collectors.batch.values import Unreadable, whole_number
from collectors.format import Format
from collectors.parsed import Account, Parsed, Reject
from collectors.source import Source
from collectors.tables import CALLS, SERVICE_COUNTERS

SERVICE = "nfsd"
REPEATED = "second line of the same counters"
CLIENT = "calls of an NFS client (/proc/net/rpc/nfs): read /proc/net/rpc/nfsd of the server"

_LARGEST = 2**53 - 1  # sums over many services still fit 64 bits
# The first values of these lines, and their units; the rest is about errors and connections.
_TOTALS = {
    "rpc": ((CALLS, "reqs"),),
    "io": (("read_bytes", "bytes"), ("write_bytes", "bytes")),
}
_CLIENT_VALUES = 3  # of a client's line "rpc", which is above its procedures; a server has 5
_MOST_VALUES = 128  # of a line: NFS 4.2 has 76 operations
_VERSION_2 = (
    *("null", "getattr", "setattr", "root", "lookup", "readlink", "read", "wrcache", "write"),
    *("create", "remove", "rename", "link", "symlink", "mkdir", "rmdir", "readdir", "statfs"),
)
_VERSION_3 = (
    *("null", "getattr", "setattr", "lookup", "access", "readlink", "read", "write", "create"),
    *("mkdir", "symlink", "mknod", "remove", "rmdir", "rename", "link", "readdir", "readdirplus"),
    *("fsstat", "fsinfo", "pathconf", "commit"),
)
# Operations inside of COMPOUND calls, from number 3 on; RFC 7530, 8881, 7862 and 8276.
_VERSION_4 = (
    *("op_0", "op_1", "op_2", "access", "close", "commit", "create", "delegpurge", "delegreturn"),
    *("getattr", "getfh", "link", "lock", "lockt", "locku", "lookup", "lookupp", "nverify", "open"),
    *("openattr", "open_confirm", "open_downgrade", "putfh", "putpubfh", "putrootfh", "read"),
    *("readdir", "readlink", "remove", "rename", "renew", "restorefh", "savefh", "secinfo"),
    *("setattr", "setclientid", "setclientid_confirm", "verify", "write", "release_lockowner"),
    *("backchannel_ctl", "bind_conn_to_session", "exchange_id", "create_session"),
    *("destroy_session", "free_stateid", "get_dir_delegation", "getdeviceinfo", "getdevicelist"),
    *("layoutcommit", "layoutget", "layoutreturn", "secinfo_no_name", "sequence", "set_ssv"),
    *("test_stateid", "want_delegation", "destroy_clientid", "reclaim_complete", "allocate"),
    *("copy", "copy_notify", "deallocate", "io_advise", "layouterror", "layoutstats"),
    *("offload_cancel", "offload_status", "read_plus", "seek", "write_same", "clone", "getxattr"),
    *("setxattr", "listxattrs", "removexattr"),
)
_PROCEDURES = {
    "proc2": ("nfs2", _VERSION_2),
    "proc3": ("nfs3", _VERSION_3),
    "proc4ops": ("nfs4", _VERSION_4),
}
# Calls about names and attributes, like Lustre's metadata operations; the rest of version 4 frames
# others or is about sessions and locks.
_METADATA = frozenset(
    {
        *("access", "close", "create", "getattr", "link", "lookup", "lookupp", "mkdir", "mknod"),
        *("open", "readdir", "readdirplus", "readlink", "remove", "rename", "rmdir", "setattr"),
        *("symlink",),
    }
)
METADATA_COUNTERS = tuple(
    f"{version}_{name}"
    for version, names in _PROCEDURES.values()
    for name in names
    if name in _METADATA
)


def parse(source: Source) -> Iterator[Parsed]:
    """Parse the counters of an NFS server.

    Yields:
        Parts with a frame of `tables.SERVICE_COUNTERS`: of the service `nfsd`, `CALLS`, bytes, and
        a counter for each procedure that was called, such as ``nfs3_lookup``. Lines about threads,
        caches and connections are irrelevant; so is ``proc4``, because its calls are counted by
        operation.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    lines = numbered_lines(source, keep_newline=True)
    seen: set[str] = set()
    while part := list(islice(lines, PART_LINES)):
        yield _parsed(part, seen)


def _parsed(lines: list[tuple[int, str]], seen: set[str]) -> Parsed:
    """Parse some lines; `seen` are the names of the lines that were accepted before."""
    rows: list[Row] = []
    rejects: list[Reject] = []
    accepted = 0
    for number, text in lines:
        name, *values = text.split() or [""]
        try:
            counters = _counters(name, values, seen)
            if counters is not None:
                _refuse_cut(text)
        except Unreadable as error:
            rejects.append(Reject(number, text.rstrip("\r\n"), str(error)))
            continue
        if counters is not None:
            accepted += 1
            seen.add(name)
            rows += [_row(number, *counter) for counter in counters]
    account = Account(len(lines), accepted, len(rejects), len(lines) - accepted - len(rejects))
    return Parsed.from_rows(SERVICE_COUNTERS, rows, rejects, account)


def _refuse_cut(text: str) -> None:
    if not text.endswith("\n"):
        raise Unreadable("the line is cut: its last number may be incomplete")


def _counters(name: str, values: list[str], seen: set[str]) -> list[tuple[str, str, int]] | None:
    """Return name, unit and value of the counters of a line; None: it is irrelevant.

    Raises:
        Unreadable: the line lacks values, one is not a number, its name was `seen` before, or the
            file is a client's.
    """
    if name not in _TOTALS and name not in _PROCEDURES:
        return None
    if CLIENT in seen or (name == "rpc" and len(values) == _CLIENT_VALUES):
        seen.add(CLIENT)
        raise Unreadable(CLIENT)
    if name in seen:
        raise Unreadable(REPEATED)
    if name in _TOTALS:
        totals = _TOTALS[name]
        if len(values) < len(totals):
            raise Unreadable(f"{name!r} has {len(values)} values, not {len(totals)} or more")
        return [
            (counter, unit, _number(value))
            for (counter, unit), value in zip(totals, values, strict=False)
        ]
    version, procedures = _PROCEDURES[name]
    if len(values) > _MOST_VALUES:
        raise Unreadable(f"{name!r} has {len(values)} values, more than {_MOST_VALUES}")
    if not values or len(values) != _number(values[0]) + 1:
        raise Unreadable(f"{name!r} is cut: it does not have as many values as it states")
    unknown = (f"op_{number}" for number in range(len(procedures), len(values)))
    return [
        (f"{version}_{procedure}", "reqs", count)
        for procedure, count in zip((*procedures, *unknown), map(_number, values[1:]), strict=False)
        if count
    ]


def _number(text: str) -> int:
    number = whole_number(text, "value", _LARGEST)
    if number < 0:
        raise Unreadable(f"value {number} is negative")
    return number


def _row(line: int, counter: str, unit: str, value: int) -> Row:
    return {
        "line": line,
        "service": SERVICE,
        "snapshot_at": None,
        "counted_since": None,
        "counter": counter,
        "unit": unit,
        "samples": 0 if unit == "bytes" else value,
        "min": 0,
        "max": 0,
        "sum": value if unit == "bytes" else 0,
    }


NFSD = Format(
    name="nfsd",
    label="NFS server calls",
    table=SERVICE_COUNTERS,
    parse=lambda source, _: parse(source),
    scopes=("server",),
    options=("server", "at"),
    agent_inputs=("command",),
)
