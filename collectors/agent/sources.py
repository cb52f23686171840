"""What reads each kind of source."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

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
from collectors.formats import FORMATS, RECORDS

# Formats whose commands print what they then forget.
FORGOTTEN = ("rpctrace",)

AFTER_DUMP_S = 1.0  # a journal is looked at so often, when it is written to now and then

Step = Callable[[], float]  # does some work and returns how many seconds to wait


def reader_of(source: SourceConfig, folder: Path) -> Reader:
    """Return what reads a source, which has a folder of its own."""
    if source.kind == "folder":
        return _folder_reader(source)
    if source.kind == "file":
        return _log_reader(source, source.path)
    if has_journal(source):
        return _log_reader(source, str(_journal(folder)))
    return _poll_reader(source, folder)


def has_journal(source: SourceConfig) -> bool:
    """Tell whether what the source says can be read only once."""
    return source.kind == "pipe" or (source.kind == "command" and source.format in FORGOTTEN)


def beat_s(source: SourceConfig) -> float:
    """Return how often the source is read."""
    is_dumped = has_journal(source) and source.kind == "command"
    return min(source.every_s, AFTER_DUMP_S) if is_dumped else source.every_s


def feeder_of(source: SourceConfig, spool: Spool, health: Health) -> Step:
    """Return what feeds the journal of such a source."""
    journal = Journal(_journal(spool.folder), lambda: spool.place.get("file", {}).get("inode"))
    if source.kind == "pipe":
        return PipeFeeder(Path(source.path), journal, health).step
    return CommandFeeder(source.command, source.timeout_s, source.every_s, journal, health).step


def _journal(folder: Path) -> Path:
    return folder / "journal"


def _folder_reader(source: SourceConfig) -> Reader:
    form = FORMATS[source.format]
    if source.format == "rpctrace":
        return TraceFolderReader(source.path, source.settled_s)
    return FolderReader(
        form.table, source.path, source.settled_s, lambda text: form.parse(text, source.origin)
    )


def _poll_reader(source: SourceConfig, folder: Path) -> Reader:
    form = FORMATS[source.format]
    match source.format:
        case "job_stats":
            kind = counters.of_jobs(timedelta(seconds=source.idle_s))
            return CounterReader(folder, source.command, source.timeout_s, kind)
        case "md_stats":
            return CounterReader(folder, source.command, source.timeout_s, counters.of_targets())
        case "mds_stats":
            return SnapshotReader(source.command, source.timeout_s, form)
        case _:
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
    if source.format == "rpctrace":
        return TraceReader(log)
    parse = RECORDS[source.format]
    table = FORMATS[source.format].table
    return LineReader(table, log, lambda lines: parse(lines, source.origin))
