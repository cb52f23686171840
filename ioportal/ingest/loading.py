"""Loading: store each input file once, as a segment with its raw rows, in one transaction."""

from __future__ import annotations

import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import polars as pl
from django.db import IntegrityError, transaction

from collectors import tables
from collectors.format import Origin as InputOrigin
from collectors.formats import BY_NAME
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, SourceUnavailable
from ioportal.ingest.models import Reject, Segment
from ioportal.site import name_ids
from ioportal.telemetry.free_space import require_space

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from collectors.format import Format
    from collectors.parsed import Parsed
    from collectors.source import Source
    from ioportal.site.models import Cluster, Filesystem, Server, Target

_NAME_CHARACTERS = 1_024
_Item = TypeVar("_Item")
_CORRECTIONS = (tables.JOBS, tables.LAUNCHES, tables.WORKLOAD_JOBS)


class Refused(Exception):  # noqa: N818  (a decision about the input, not a fault)
    """The file cannot be loaded; the message names the reason and the remedy."""


@dataclass(frozen=True)
class Origin:
    """The declared origin of a file: cluster, server, target, service and time of reading."""

    cluster: Cluster | None = None
    filesystem: Filesystem | None = None  # of all servers and targets of the file
    server: Server | None = None
    target: Target | None = None
    service: str | None = None
    read_at: datetime | None = None
    experiment: Any = None  # as `formats.NAMED` returns it
    arm: str = ""  # for runs whose file does not name an arm
    run: str = ""  # for files that do not name a run; "": by the name of the file

    def check(self, component: Server | Target) -> None:
        """Refuse a server or target of another filesystem."""
        if self.filesystem and component.filesystem != self.filesystem:
            raise Refused(
                f"{component} belongs to filesystem {component.filesystem}, not {self.filesystem}."
            )

    def identity(self) -> str:
        """Return the part of the digest that distinguishes files with equal content."""
        parts = [str(part or "") for part in (self.cluster, self.server, self.target, self.read_at)]
        if self.service:
            parts.append(self.service)
        if self.experiment:
            parts += [str(self.experiment.pk), self.arm, self.run]
        return "\n".join(parts)


@dataclass(frozen=True)
class InputFile:
    """A file to load: a function that opens it, and its origin."""

    open: Callable[[], Source]
    origin: Origin
    name: str | None = None  # None: the file can be read only once


@dataclass(frozen=True)
class LoadOptions:
    """The options that all files of a command share."""

    replace: bool = False
    register_targets: bool = False  # new ones, by their names
    columns: Sequence[str] | None = None  # of sacct output without a header
    repeats: RepeatedRecords = field(default_factory=RepeatedRecords)  # across the files
    loaded: set[int] = field(default_factory=set)  # keys of the segments of the command so far

    def for_attempt(self) -> LoadOptions:
        """Return the same options without memory of records."""
        return replace(self, repeats=RepeatedRecords())


class Loader:
    """Stores the rows of one file; one class per table (`ioportal.ingest.loaders`)."""

    time_column: str | None = None  # of its table, if its files are in order of time

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        self.options = options
        self.segment = segment
        self.origin = origin

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file."""
        return self.parsed(source, InputOrigin())

    def parsed(self, source: Source, origin: InputOrigin) -> Iterator[Parsed]:
        """Parse a file by the format of the segment."""
        return BY_NAME[self.segment.format].parse(source, origin)

    def store(self, parsed: Parsed) -> None:
        """Append the rows of a part."""
        raise NotImplementedError

    def recognises(self, account: Account) -> bool:
        """Return whether a file with this account has the format; others have no such lines."""
        return account.accepted > 0

    def finish(self) -> None:
        """Complete the segment: its extent, coverage and dirty intervals."""

    @classmethod
    def finish_all(cls, loaders: Sequence[Self]) -> None:
        """Complete the segments of a transaction."""
        for loader in loaders:
            loader.finish()


LoaderFactory: TypeAlias = "Callable[[Segment, Origin], Loader]"


@dataclass(frozen=True)
class Loaded:
    """The result of loading a file."""

    segment: Segment
    already: bool  # it was loaded before


def load(
    files: list[InputFile],
    form: Format,
    attempt: Callable[[], LoaderFactory],
    on_progress: Callable[[Source, Account], None] = lambda _source, _account: None,
    *,
    replace: bool = False,
) -> list[Loaded]:
    """Load files in one transaction, interleaved in order of the times of their records.

    Args:
        files: files to load; a file that is a segment already is skipped.
        form: the format of all files.
        attempt: starts an attempt without state of a previous one, and returns the loader factory.
        on_progress: called after every part.
        replace: if some files are new, load the others again as well, so that overlapping records
            are stored once. Accounting is always loaded again, as a correction.

    Raises:
        Refused: a file contradicts loaded or registered data.
        SourceUnavailable: a file cannot be read to its end.
        Overload: the database's disk is nearly full; also during the load.
    """
    # Files with new names are most likely new. With `replace`, each of several must be known.
    digests = _digests(files, form, all_files=replace and len(files) > 1)
    return _load(files, digests, form, attempt, on_progress, replace=replace)


def load_each(
    files: list[InputFile],
    form: Format,
    attempt: Callable[[], LoaderFactory],
    on_progress: Callable[[Source, Account], None],
    refused: list[str],
    *,
    replace: bool = False,
) -> Iterator[list[Loaded]]:
    """Load files one by one, or several in one transaction if none is refused; see `load`.

    The reasons of those that are refused are appended to `refused`.
    """
    if len(files) > 1:
        with suppress(Refused, SourceUnavailable):  # perhaps because of one of them
            yield load(files, form, attempt, on_progress, replace=replace)
            return
    for file in files:
        try:
            yield load([file], form, attempt, on_progress, replace=replace)
        except (Refused, SourceUnavailable) as error:
            refused.append(str(error))


def _load(
    files: list[InputFile],
    digests: list[str],
    form: Format,
    attempt: Callable[[], LoaderFactory],
    on_progress: Callable[[Source, Account], None],
    *,
    replace: bool,
) -> list[Loaded]:
    require_space()
    stored = {segment.digest: segment for segment in Segment.objects.filter(digest__in=digests)}
    again = replace and (form.table in _CORRECTIONS or not stored.keys() >= set(digests))
    new = [
        number
        for number, digest in enumerate(digests)
        if not digest or (digest not in digests[:number] and (again or digest not in stored))
    ]
    new_loader = attempt()
    loads = [_Load(files[number], form, new_loader, on_progress) for number in new]
    try:
        with transaction.atomic():
            _load_interleaved(loads, again=again)
    except (_AlreadyLoaded, IntegrityError, Refused) as error:
        # A loaded file has a new name, or another command loaded a file meanwhile.
        loaded = list(Segment.objects.filter(digest__in=[load.digest() for load in loads]))
        if again or not (loaded or isinstance(error, _AlreadyLoaded)):
            raise
        if len(files) == 1:
            return [Loaded(loaded[0], already=True)]
        digests = _digests(files, form, all_files=True)
        return _load(files, digests, form, attempt, on_progress, replace=replace)
    for number, finished in zip(new, loads, strict=True):
        digests[number] = finished.segment.digest
    new_segments = {finished.segment.digest: finished.segment for finished in loads}
    return [
        Loaded(new_segments[digest], already=False)
        if digest in new_segments
        else Loaded(stored[digest], already=True)
        for digest in digests
    ]


class _AlreadyLoaded(Exception):  # noqa: N818  (rolls back the transaction)
    """A file is loaded already, or given twice."""


class _Load:
    """The state of loading one file."""

    def __init__(
        self,
        file: InputFile,
        form: Format,
        new_loader: LoaderFactory,
        on_progress: Callable[[Source, Account], None],
    ) -> None:
        self._form = form
        self._origin = file.origin
        self._open = file.open
        self._new_loader = new_loader
        self._on_progress = on_progress
        self._account = Account()
        self._is_read = False
        self._reasons: Counter[str] = Counter()
        self._stored_rejects: Counter[str] = Counter()
        self.reached = datetime.min.replace(tzinfo=UTC)  # time of the latest record parsed

    def begin(self, key: int) -> None:
        """Open the file. Its segment gets a key, and is stored at the end."""
        self.source = self._open()
        self.segment = Segment(
            pk=key,
            format=self._form.name,
            name=stored_name(self.source.name),
            cluster=self._origin.cluster,
            server=self._origin.server,
            experiment=self._origin.experiment,
        )
        self.loader = self._new_loader(self.segment, self._origin)
        self._parts = self.loader.parts(self.source)

    def parse(self) -> Parsed | None:
        """Return the next part; None when there is none."""
        parsed = next(self._parts, None)
        if parsed is None:
            self._is_read = True
        elif self.loader.time_column:
            (latest,) = parsed.table.select(pl.max(self.loader.time_column)).row(0)
            self.reached = max(self.reached, latest or self.reached)
        return parsed

    def store(self, parsed: Parsed) -> None:
        """Store a part."""
        self.loader.store(parsed)
        self._account += parsed.account
        self._store_rejects(parsed)
        require_space()
        self._on_progress(self.source, self._account)

    def complete(self) -> None:
        """Complete the account of the segment; refuse a file of another format."""
        if not self.loader.recognises(self._account):
            raise Refused(self._nothing_accepted())
        for name in ("lines", "accepted", "rejected", "irrelevant"):
            setattr(self.segment, name, getattr(self._account, name))
        self.segment.rejected_by_reason = dict(self._reasons)
        self.segment.digest = self.digest()

    def _nothing_accepted(self) -> str:
        label = self._form.label
        if not self._account.lines:
            return f"{self.source.name} is empty. Nothing was loaded."
        first = self.segment.rejects.order_by("line").first()
        reason = f" Line {first.line}: {first.reason}." if first else ""
        return (
            f"{self.source.name}: none of its {self._account.lines:,} lines is {label}.{reason} "
            "Nothing was loaded. Check the format."
        )

    def digest(self) -> str:
        """Return the digest of the content and the origin; "" until the file is read to its end."""
        return file_digest(self._form, self._origin, self.source) if self._is_read else ""

    def _store_rejects(self, parsed: Parsed) -> None:
        """Count rejects by reason; store the first rows of each reason."""
        if parsed.rejects.is_empty():
            return
        reasons = parsed.rejects["reason"].value_counts(sort=True)
        for reason, lines in reasons.iter_rows():
            is_counted = reason in self._reasons or len(self._reasons) < REASONS_STORED
            self._reasons[reason if is_counted else OTHER_REASONS] += lines
        number = pl.int_range(1, pl.len() + 1).over("reason")
        before = pl.col("reason").replace_strict(
            self._stored_rejects, default=0, return_dtype=pl.Int64
        )
        rejects = parsed.rejects.filter(
            pl.col("reason").is_in(list(self._reasons)), before + number <= REJECTS_STORED
        ).with_columns(name_ids.storable(pl.col("text", "reason"), REJECT_TEXT_CHARACTERS))
        self._stored_rejects.update(rejects["reason"].to_list())
        Reject.objects.bulk_create(
            Reject(segment=self.segment, **row) for row in rejects.iter_rows(named=True)
        )


def _load_interleaved(loads: list[_Load], *, again: bool) -> None:
    for load, key in zip(loads, Segment.objects.new_keys(len(loads)), strict=True):
        load.begin(key)
    with closing(prefetch(_in_order_of_time(loads))) as parts:
        for load, parsed in parts:
            load.store(parsed)
    digests = {load.digest() for load in loads}
    is_stored = Segment.objects.filter(digest__in=digests).exists() and not again
    if is_stored or len(digests) < len(loads):
        raise _AlreadyLoaded
    for load in loads:
        load.complete()
    if loads:
        loaders = [load.loader for load in loads]
        type(loaders[0]).finish_all(loaders)
    Segment.objects.filter(digest__in=digests, accounting_records__isnull=False).delete()
    Segment.objects.bulk_create(load.segment for load in loads)


def _in_order_of_time(loads: list[_Load]) -> Iterator[tuple[_Load, Parsed]]:
    """Parse the files part by part, always the file with the earliest latest record."""
    unfinished = list(loads)
    while unfinished:
        behind = min(unfinished, key=lambda load: load.reached)
        if parsed := behind.parse():
            yield behind, parsed
        else:
            unfinished.remove(behind)


def _digests(files: list[InputFile], form: Format, *, all_files: bool) -> list[str]:
    """Read files with known names, or all, through and return their digests, otherwise ""."""
    names = [None if file.name is None else stored_name(file.name) for file in files]
    segments = Segment.objects.filter(format=form.name, name__in=set(names) - {None})
    known = set(names) if all_files else set(segments.values_list("name", flat=True))
    return [
        _digest(file, form) if name is not None and name in known else ""
        for file, name in zip(files, names, strict=True)
    ]


def _digest(file: InputFile, form: Format) -> str:
    source = file.open()
    for _ in source.chunks():
        pass
    return file_digest(form, file.origin, source)


def file_digest(form: Format, origin: Origin, source: Source) -> str:
    """Return the digest of the content and the origin of a file."""
    identity = f"{form.name}\n{origin.identity()}\n{source.digest}"
    return hashlib.sha256(identity.encode()).hexdigest()


def stored_name(name: str) -> str:
    """Return the end of a file's name, as segments store it."""
    return name[-_NAME_CHARACTERS:]


def prefetch(items: Iterator[_Item]) -> Generator[_Item]:
    """Yield the same items; a thread produces the next one meanwhile.

    Parsing and copying then use two processors, because neither holds Python's lock for long.
    `items` must not use the database: the thread has no connection. A caller that may stop early
    closes the generator, which ends the thread.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item


REJECTS_STORED = 1_000  # per reason
REASONS_STORED = 100
OTHER_REASONS = "other reasons"
