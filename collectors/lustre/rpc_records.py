"""What the two ways to read an RPC trace agree on: a record's columns and its limits.

`line` is the number of its line. `time_us`, of the line, counts from the epoch; `service_us` is the
time in the handler, `total_us` from arrival to end: microseconds, the two null where the line does
not tell them. `job` is "" where there is none. `fingerprint` is a hash of NID, xid, opcode and
time.
"""

import polars as pl

COLUMNS = (
    "line",
    "time_us",
    "nid",
    "job",
    "service",
    "opcode",
    "service_us",
    "total_us",
    "fingerprint",
)

LATEST_S = 2**32 - 1  # the header's seconds are an unsigned 32-bit number
THREAD_CHARACTERS = 16
JOB_CHARACTERS = 31  # Lustre cuts a job id there


def service_of(thread: pl.Expr) -> pl.Expr:
    """Return the base of a server thread's name: mdt_rdpg01_002 is a thread of mdt_rdpg."""
    return thread.str.strip_chars_end("0123456789_")


def fingerprint() -> pl.Expr:
    """Hash what makes a record the same as another one."""
    return pl.struct("nid", "xid", "opcode", "time_us").hash()
