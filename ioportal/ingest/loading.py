"""Loading: a file becomes a segment with its raw rows, once, and whole or not at all."""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias
from uuid import uuid4

import polars as pl
from django.db import IntegrityError, transaction

from collectors.parsed import REJECT_TEXT_CHARACTERS, Account
from ioportal.ingest.models import Reject, Segment
from ioportal.ingest.prefetch import prefetch
from ioportal.site import name_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collectors.format import Format
    from collectors.parsed import Parsed
    from collectors.source import Source
    from ioportal.site.models import Cluster, Filesystem, Server, Target

REJECTS_STORED = 1_000  # of each reason
REASONS_STORED = 100
_NAME_CHARACTERS = 1_024
OTHER_REASONS = "other reasons"


class Refused(Exception):  # noqa: N818  (a decision about the input, not a fault)
    """The file cannot be loaded as asked; the message says why and what to do."""


@dataclass(frozen=True)
class Origin:
    """What a file is said to be: who wrote it, and when it was read."""

    cluster: Cluster | None = None
    filesystem: Filesystem | None = None  # what servers and targets must be of
    server: Server | None = None
    target: Target | None = None
    service: str | None = None
    read_at: datetime | None = None

    def check(self, thing: Server | Target) -> None:
        """Refuse a server or target of another filesystem than the one that was told."""
        if self.filesystem and thing.filesystem != self.filesystem:
            raise Refused(f"{thing} is of filesystem {thing.filesystem}, not of {self.filesystem}.")

    def identity(self) -> str:
        """Return what makes equal files different segments."""
        told = (self.cluster, self.server, self.target, self.read_at)
        named = [str(thing or "") for thing in told]
        return "\n".join([*named, self.service] if self.service else named)


@dataclass(frozen=True)
class InputFile:
    """A file to load: how to open it, and what it is said to be."""

    open: Callable[[], Source]
    origin: Origin
    name: str | None = None  # of the file; None: it can be read only once


class Loader(Protocol):
    """Stores the parts of one file; one class per table (`ioportal.ingest.formats`)."""

    time_column: str | None  # of its table: how far a part has come, in a file in order of time

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file."""

    def store(self, parsed: Parsed) -> None:
        """Append a part's rows."""

    def recognises(self, account: Account) -> bool:
        """Tell whether a file with this account is of the format at all."""

    def finish(self) -> None:
        """Complete the segment: its extent, coverage and pending intervals."""


LoaderFactory: TypeAlias = "Callable[[Segment, Origin], Loader]"


@dataclass(frozen=True)
class Loaded:
    """What became of a file."""

    segment: Segment
    already: bool  # it was loaded before; nothing was done


def load(
    files: list[InputFile],
    form: Format,
    attempt: Callable[[], LoaderFactory],
    on_progress: Callable[[Source, Account], None] = lambda _source, _account: None,
    *,
    replace: bool = False,
) -> list[Loaded]:
    """Load files in one transaction, side by side in order of their records' times.

    Args:
        files: each becomes a segment, unless it is one already.
        form: of all of them.
        attempt: begins an attempt, with no memory of one that was taken back; gives loaders.
        on_progress: told after every part.
        replace: load those that are segments again beside those that are not: where they overlap,
            each record is to be found once.

    Raises:
        Refused: one contradicts what is loaded or registered.
        SourceUnavailable: one cannot be read to its end.
    """
    digests = [_digest_before(file, form, alone=len(files) == 1) for file in files]
    known = {segment.digest: segment for segment in Segment.objects.filter(digest__in=digests)}
    again = replace and not known.keys() >= set(digests)
    new = [
        number
        for number, digest in enumerate(digests)
        if not digest or (digest not in digests[:number] and (again or digest not in known))
    ]
    loader_of = attempt()
    loads = [_Load(files[number], form, loader_of, on_progress) for number in new]
    try:
        with transaction.atomic():
            _load_side_by_side(loads, again=again)
    except (_KnownText, IntegrityError, Refused):
        # A file of a new name was known, or another command has loaded one meanwhile.
        loaded = list(Segment.objects.filter(digest__in=[load.digest() for load in loads]))
        if again or not loaded:
            raise
        if len(files) == 1:
            return [Loaded(loaded[0], already=True)]
        return load(files, form, attempt, on_progress, replace=replace)
    for number, loaded_text in zip(new, loads, strict=True):
        digests[number] = loaded_text.segment.digest
    fresh = {loaded_text.segment.digest: loaded_text.segment for loaded_text in loads}
    return [
        Loaded(fresh[digest], already=False)
        if digest in fresh
        else Loaded(known[digest], already=True)
        for digest in digests
    ]


def _digest_before(file: InputFile, form: Format, *, alone: bool) -> str:
    """Return a file's digest before it is loaded, by reading it through; "" where that is vain.

    A file that comes alone under a new name is most likely new.
    """
    if file.name is None:
        return ""
    segments = Segment.objects.filter(format=form.name, name=_kept(file.name))
    if alone and not segments.exists():
        return ""
    source = file.open()
    for _ in source.chunks():
        pass
    return _digest(form, file.origin, source)


def _digest(form: Format, origin: Origin, source: Source) -> str:
    """Return the digest of a file that was read, together with what it is said to be."""
    identity = f"{form.name}\n{origin.identity()}\n{source.digest}"
    return hashlib.sha256(identity.encode()).hexdigest()


def _kept(name: str) -> str:
    return name[-_NAME_CHARACTERS:]


class _KnownText(Exception):  # noqa: N818  (takes back what was done so far)
    """A file is loaded already, or given twice."""


class _Load:
    """One file on its way into the database."""

    def __init__(
        self,
        file: InputFile,
        form: Format,
        loader_of: LoaderFactory,
        on_progress: Callable[[Source, Account], None],
    ) -> None:
        self._form = form
        self._origin = file.origin
        self._open = file.open
        self._loader_of = loader_of
        self._on_progress = on_progress
        self._account = Account()
        self._read_whole = False
        self._reasons: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self.reached = datetime.min.replace(tzinfo=UTC)  # the latest record that was parsed

    def begin(self) -> None:
        """Create the segment; its digest is known at the end."""
        self.source = self._open()
        self.segment = Segment.objects.create(
            format=self._form.name,
            digest=f"{Segment.LOADING}{uuid4()}",
            name=_kept(self.source.name),
            cluster=self._origin.cluster,
            server=self._origin.server,
        )
        self._loader = self._loader_of(self.segment, self._origin)
        self._parts = self._loader.parts(self.source)

    def parse(self) -> Parsed | None:
        """Return the next part; None when there is none."""
        parsed = next(self._parts, None)
        if parsed is None:
            self._read_whole = True
        elif self._loader.time_column:
            (latest,) = parsed.table.select(pl.max(self._loader.time_column)).row(0)
            self.reached = max(self.reached, latest or self.reached)
        return parsed

    def store(self, parsed: Parsed) -> None:
        """Store a part."""
        self._loader.store(parsed)
        self._account += parsed.account
        self._keep_rejects(parsed)
        self._on_progress(self.source, self._account)

    def finish(self) -> None:
        """Complete what the loader stored; refuse a file that is nothing of the kind."""
        if not self._loader.recognises(self._account):
            raise Refused(self._nothing_accepted())
        self._loader.finish()

    def save(self) -> None:
        """Complete the segment: from here on it is loaded."""
        for name in ("lines", "accepted", "rejected", "irrelevant"):
            setattr(self.segment, name, getattr(self._account, name))
        self.segment.rejected_by_reason = dict(self._reasons)
        self.segment.digest = self.digest()
        self.segment.save()

    def _nothing_accepted(self) -> str:
        kind = self._form.label
        if not self._account.lines:
            return f"{self.source.name} is empty. Nothing of it was loaded."
        first = self.segment.rejects.order_by("line").first()
        why = f" Line {first.line}: {first.reason}." if first else ""
        return (
            f"{self.source.name}: none of its {self._account.lines:,} lines is {kind}.{why} "
            "Nothing of it was loaded. Check the FORMAT that was named."
        )

    def digest(self) -> str:
        """Return the digest of the file and what it is said to be; "" until it is read whole."""
        return _digest(self._form, self._origin, self.source) if self._read_whole else ""

    def _keep_rejects(self, parsed: Parsed) -> None:
        """Count every reject by its reason; store the first of each."""
        if parsed.rejects.is_empty():
            return
        reasons = parsed.rejects["reason"].value_counts(sort=True)
        for reason, lines in reasons.iter_rows():
            named = reason in self._reasons or len(self._reasons) < REASONS_STORED
            self._reasons[reason if named else OTHER_REASONS] += lines
        number = pl.int_range(1, pl.len() + 1).over("reason")
        before = pl.col("reason").replace_strict(self._kept, default=0, return_dtype=pl.Int64)
        kept = parsed.rejects.filter(
            pl.col("reason").is_in(list(self._reasons)), before + number <= REJECTS_STORED
        ).with_columns(name_ids.storable(pl.col("text", "reason"), REJECT_TEXT_CHARACTERS))
        self._kept.update(kept["reason"].to_list())
        Reject.objects.bulk_create(
            Reject(segment=self.segment, **row) for row in kept.iter_rows(named=True)
        )


def _load_side_by_side(loads: list[_Load], *, again: bool) -> None:
    for load in loads:
        load.begin()
    with closing(prefetch(_in_order_of_time(loads))) as parts:
        for load, parsed in parts:
            load.store(parsed)
    digests = {load.digest() for load in loads}
    is_known = Segment.objects.filter(digest__in=digests).exists() and not again
    if is_known or len(digests) < len(loads):
        raise _KnownText
    for load in loads:
        load.finish()
    for load in loads:
        load.save()


def _in_order_of_time(loads: list[_Load]) -> Iterator[tuple[_Load, Parsed]]:
    """Parse the files, part by part: always that one which is behind."""
    unfinished = list(loads)
    while unfinished:
        behind = min(unfinished, key=lambda load: load.reached)
        if parsed := behind.parse():
            yield behind, parsed
        else:
            unfinished.remove(behind)
