"""The reader and feeder of each kind of source."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from collectors.agent.config import SourceConfig
from collectors.agent.delivery.spool import Spool
from collectors.agent.files.folders import FolderReader
from collectors.agent.files.journal import CommandFeeder, Journal, PipeFeeder
from collectors.agent.files.lines import LineReader
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceFolderReader, TraceReader
from collectors.agent.health import Health
from collectors.agent.polling import counters
from collectors.agent.polling.counters import CounterReader
from collectors.agent.polling.exports import ExportReader
from collectors.agent.polling.snapshots import SnapshotReader
from collectors.agent.reader import Reader
from collectors.tables import (
    EXPORT_COUNTERS,
    JOB_COUNTERS,
    RPC_WINDOWS,
    SERVICE_COUNTERS,
    TARGET_COUNTERS,
)

if TYPE_CHECKING:
    from collectors.format import LineFormat

AFTER_DUMP_S = 1.0  # interval for journals that a command feeds

Step = Callable[[], float]  # does some work; returns the seconds to wait


def reader_of(source: SourceConfig, folder: Path) -> Reader:
    """Return the reader of a source.

    Args:
        source: its configuration.
        folder: for the source's state.
    """
    if source.kind == "folder":
        return _folder_reader(source)
    if source.kind == "file":
        return _log_reader(source, source.path)
    if has_journal(source):
        return _log_reader(source, str(_journal(folder)))
    return _poll_reader(source, folder)


def has_journal(source: SourceConfig) -> bool:
    """Whether the source can be read only once."""
    prints_once = source.format.table is RPC_WINDOWS  # a dump clears the kernel's log
    return source.kind == "pipe" or (source.kind == "command" and prints_once)


def interval_s(source: SourceConfig) -> float:
    """Return the interval of reads."""
    is_dumped = has_journal(source) and source.kind == "command"
    return min(source.every_s, AFTER_DUMP_S) if is_dumped else source.every_s


def feeder_of(source: SourceConfig, spool: Spool, health: Health) -> Step:
    """Return the step that feeds the journal of a source."""
    journal = Journal(_journal(spool.folder), lambda: spool.checkpoint.get("file", {}).get("inode"))
    if source.kind == "pipe":
        return PipeFeeder(Path(source.path), journal, health).step
    return CommandFeeder(source.command, source.timeout_s, source.every_s, journal, health).step


def _journal(folder: Path) -> Path:
    return folder / "journal"


def _folder_reader(source: SourceConfig) -> Reader:
    form = source.format
    if form.table is RPC_WINDOWS:
        return TraceFolderReader(source.path, source.settled_s)
    return FolderReader(
        form.table, source.path, source.settled_s, lambda text: form.parse(text, source.origin)
    )


def _poll_reader(source: SourceConfig, folder: Path) -> Reader:
    form = source.format
    if form.table is JOB_COUNTERS:
        kind = counters.job_counters(timedelta(seconds=source.idle_s))
        return CounterReader(folder, source.command, source.timeout_s, kind)
    if form.table is TARGET_COUNTERS:
        return CounterReader(folder, source.command, source.timeout_s, counters.target_counters())
    if form.table is EXPORT_COUNTERS:
        return CounterReader(folder, source.command, source.timeout_s, counters.export_counters())
    if form.table is SERVICE_COUNTERS:
        return SnapshotReader(source.command, source.timeout_s, form)
    return ExportReader(
        folder,
        source.command,
        form,
        source.origin,
        timeout_s=source.timeout_s,
        look_back_s=source.look_back_s,
    )


def _log_reader(source: SourceConfig, path: str) -> LineReader:
    log = LogTail(path, source.settled_s)
    if source.format.table is RPC_WINDOWS:
        return TraceReader(log)
    form = cast("LineFormat", source.format)  # only those can be a file or pipe (`AgentInput`)
    return LineReader(form.table, log, lambda lines: form.parse(lines, source.origin))
