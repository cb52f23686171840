"""Uploads of experiments: receive and load files; attachments; storage quotas."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Max, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce, Length
from django.utils import timezone

from collectors import tables
from collectors.formats import BY_NAME, recognised
from collectors.parsed import SourceUnavailable
from collectors.source import Source
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.core.visible_text import storable
from ioportal.experiments.models import Attachment, Experiment, Upload, UploadFile, UploadPart
from ioportal.ingest.loaders import attempts
from ioportal.ingest.loading import InputFile, LoadOptions, Origin, Refused, load
from ioportal.telemetry.free_space import Overload, database_full, require_space

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from collectors.format import Format
    from collectors.parsed import Account
    from ioportal.experiments.models import Run
    from ioportal.ingest.loading import Loaded

_GB = 10**9


@dataclass(frozen=True)
class Quota:
    """The quota of a user or project, and its use."""

    holder: str  # in words
    setting: str
    limit_bytes: int
    used_bytes: int

    def refusal(self, size_bytes: int) -> str:
        """Return why a file is not stored; "" if it fits."""
        if self.used_bytes + size_bytes <= self.limit_bytes:
            return ""
        return (
            f"The quota of {self.holder} is {_size(self.limit_bytes)}, of which "
            f"{_size(self.used_bytes)} are in use. This needs {_size(size_bytes)} more. "
            "Delete attachments, wait until uploads are loaded, or ask an administrator to raise "
            f"{self.setting}."
        )


def quotas_of_experiment(experiment: Experiment) -> list[Quota]:
    """Return the quotas that count the files of an experiment: its owner's, and its project's."""
    return _quotas(experiment.owner, [experiment.project] if experiment.project else [])


def quotas_of_user(user: User) -> list[Quota]:
    """Return the quota of a user, and the quotas of the user's projects if used."""
    own, *projects = _quotas(user, sorted(group.name for group in user.groups.all()))
    return [own, *(quota for quota in projects if quota.used_bytes)]


def quota_refusal(experiment: Experiment, size_bytes: int) -> str:
    """Return why an experiment cannot store another file; "" if its quotas permit it.

    Until the transaction ends, no other one stores a file.
    """
    hold(Lock.QUOTAS)
    refusals = (quota.refusal(size_bytes) for quota in quotas_of_experiment(experiment))
    return next(filter(None, refusals), "")


def _quotas(owner: User | None, projects: Iterable[str]) -> list[Quota]:
    """Return the quotas of an owner and of projects, with one query."""
    holders = [
        (
            owner.get_username() if owner else "experiments without an owner",
            "IOPORTAL_USER_QUOTA",
            settings.USER_QUOTA_BYTES,
            Q(owner=owner) if owner else Q(owner=None),
        ),
        *(
            (
                f"project {project}",
                "IOPORTAL_PROJECT_QUOTA",
                settings.PROJECT_QUOTA_BYTES,
                Q(project=project),
            )
            for project in projects
        ),
    ]
    stored = Experiment.objects.order_by().annotate(
        stored=_of_experiment(Attachment.objects.all(), "run__experiment")
        + _of_experiment(
            UploadFile.objects.exclude(upload__state__in=Upload.FINISHED), "upload__experiment"
        )
    )
    used = stored.aggregate(
        **{
            f"holder_{number}": Coalesce(Sum("stored", filter=condition), 0)
            for number, (*_, condition) in enumerate(holders)
        }
    )
    return [
        Quota(holder, setting, limit_bytes, int(used[f"holder_{number}"]))
        for number, (holder, setting, limit_bytes, _) in enumerate(holders)
    ]


def _of_experiment(files: QuerySet[Attachment] | QuerySet[UploadFile], path: str) -> Coalesce:
    """Return the total size of the files of each experiment."""
    total = files.filter(**{path: OuterRef("pk")}).order_by().values(path)
    return Coalesce(Subquery(total.annotate(total=Sum("size_bytes")).values("total")), 0)


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB" if size_bytes >= _GB else f"{size_bytes / 1e6:,.1f} MB"


log = structlog.get_logger()

PART_BYTES = 4 << 20
_MOST_ATTEMPTS = 3
_PROGRESS_S = 1.0
_KEEP = timedelta(days=1)  # of uploads that were never completed
_FILES = 10_000
_UNFINISHED = 20  # uploads of a user that are not loaded yet
ATTACHMENTS = 100  # of a run
_ATTACHMENT_NAME_CHARACTERS = 200
_FAULT = (
    "The portal failed to read it; the fault is in its log. Nothing was loaded. Check that the "
    "file is complete, or ask an administrator."
)


class Invalid(Exception):  # noqa: N818  (a decision about the request)
    """The upload or a part of it is refused; the message names the remedy."""


@transaction.atomic
def declare(upload: Upload, files: Sequence[tuple[str, int]]) -> list[UploadFile]:
    """Store an upload and its files, given as name and size in bytes; the content follows."""
    require_space()
    total = sum(size for _, size in files)
    if not files or min(size for _, size in files) <= 0:
        raise Invalid("Select at least one file; a file must not be empty.")
    if len(files) > _FILES:
        raise Invalid(f"An upload has at most {_FILES:,} files.")
    if total > settings.UPLOAD_BYTES:
        raise Invalid(
            f"The files have {total / 1e9:,.1f} GB; an upload has at most "
            f"{settings.UPLOAD_BYTES / 1e9:,.1f} GB. Compress them with gzip or zstd, or ask an "
            "administrator to load them with manage.py ingest."
        )
    unfinished = Upload.objects.unfinished().filter(owner=upload.owner).count()
    if unfinished >= _UNFINISHED:
        raise Invalid(
            f"You have {unfinished:,} uploads that are not loaded yet. Wait until they are; "
            "interrupted uploads are deleted after a day."
        )
    if refusal := quota_refusal(upload.experiment, total):
        raise Invalid(refusal)
    upload.save()
    return UploadFile.objects.bulk_create(
        UploadFile(upload=upload, name=storable(name)[-255:], size_bytes=size)
        for name, size in files
    )


def receive_part(file: UploadFile, number: int, content: bytes) -> None:
    """Store a part of a file; the same part again changes nothing."""
    require_space()
    if file.upload.state != Upload.State.RECEIVING:
        raise Invalid("The upload is complete already.")
    expected = min(PART_BYTES, file.size_bytes - number * PART_BYTES)
    if number < 0 or len(content) != expected:
        raise Invalid(f"Part {number} of {file.name} has {len(content):,} bytes, not {expected:,}.")
    UploadPart.objects.update_or_create(file=file, number=number, defaults={"content": content})


def receive(file: UploadFile, chunks: Iterable[bytes]) -> None:
    """Store the whole content of a file."""
    rest, number = b"", 0
    for chunk in chunks:
        rest += chunk
        while len(rest) >= PART_BYTES:
            receive_part(file, number, rest[:PART_BYTES])
            rest, number = rest[PART_BYTES:], number + 1
    if rest:
        receive_part(file, number, rest)


@transaction.atomic
def attach(run: Run, name: str, content: bytes) -> Attachment:
    """Store a file with a run, unread."""
    require_space()
    size = len(content)
    if size > settings.ATTACHMENT_BYTES:
        limit = settings.ATTACHMENT_BYTES / 1e6
        raise Invalid(f"An attachment has at most {limit:,.0f} MB. Compress it.")
    if refusal := quota_refusal(run.experiment, size):
        raise Invalid(refusal)
    if run.attachments.count() >= ATTACHMENTS:
        raise Invalid(
            f"Run {run.name} has {ATTACHMENTS} attachments, the most that a run may have. "
            "Delete some, or attach an archive of several files."
        )
    name = storable(name)[-_ATTACHMENT_NAME_CHARACTERS:]
    return Attachment.objects.create(run=run, name=name, content=content, size_bytes=size)


def complete(upload: Upload) -> None:
    """Release an upload for loading; all of its content must have arrived."""
    received = dict(
        UploadPart.objects.filter(file__upload=upload)
        .values_list("file")
        .annotate(size=Sum(Length("content")))
    )
    for file in upload.files.all():
        if received.get(file.pk, 0) != file.size_bytes:
            raise Invalid(
                f"{file.name}: {received.get(file.pk, 0):,} of {file.size_bytes:,} bytes arrived. "
                "Upload it again."
            )
    Upload.objects.filter(pk=upload.pk, state=Upload.State.RECEIVING).update(
        state=Upload.State.PENDING
    )


def load_next(limit: int) -> int:
    """Load up to `limit` uploads; return how many. While the disk is nearly full, they wait.

    The stage runs alone: an upload that is still marked as loading belongs to a dead worker.
    """
    for loaded in range(limit):
        upload = None if database_full() else _next()
        if upload is None:
            return loaded
        _load(upload)
    return limit


def _next() -> Upload | None:
    """Return the oldest upload of the user whose latest upload was loaded the longest ago."""
    of_owner = Upload.objects.filter(owner=OuterRef("owner")).values("owner")
    served_at = Subquery(of_owner.values(at=Max("finished_at")))
    return (
        Upload.objects.waiting()
        .select_related("experiment")
        .order_by(served_at.asc(nulls_first=True), "created_at")
        .first()
    )


def discard_abandoned(now: datetime) -> None:
    """Delete uploads that were never completed."""
    abandoned = Upload.objects.filter(state=Upload.State.RECEIVING, created_at__lt=now - _KEEP)
    abandoned.delete()


def _load(upload: Upload) -> None:
    Upload.objects.filter(pk=upload.pk).update(
        state=Upload.State.LOADING, attempts=F("attempts") + 1, lines=0
    )
    if upload.attempts >= _MOST_ATTEMPTS:
        _finish(upload, Upload.State.FAILED, "The worker stopped each time. Ask an administrator.")
        return
    try:
        with TemporaryDirectory(prefix="upload") as folder:
            paths = list(_files(upload, Path(folder)))
            loaded = _load_files(upload, paths)
    except (Refused, SourceUnavailable) as error:
        _finish(upload, Upload.State.FAILED, str(error))
    except Overload:  # in the meantime; it stays pending
        Upload.objects.filter(pk=upload.pk).update(
            state=Upload.State.PENDING, attempts=upload.attempts
        )
    except (DatabaseError, OSError):
        raise  # of the worker, not of the file: it is loaded again
    except Exception:  # any file may show an unknown fault, and the next ones must not wait for it
        log.exception("upload_failed", upload=str(upload.pk))
        _finish(upload, Upload.State.FAILED, _FAULT)
    else:
        _finish(upload, Upload.State.LOADED, _account(loaded))


def _files(upload: Upload, folder: Path) -> Iterator[tuple[str, Path]]:
    """Write the files of an upload to a folder; yield their names and paths."""
    for number, file in enumerate(upload.files.all()):
        path = folder / str(number)
        with path.open("wb") as stream:
            for part in file.parts.iterator(chunk_size=1):
                stream.write(part.content)
        yield file.name, path


def _load_files(upload: Upload, files: list[tuple[str, Path]]) -> list[Loaded]:
    form = _format(upload, files)
    is_one_run = form.table is tables.SYSTEM_CALLS and len(files) > 1
    run = upload.run or (PurePath(files[0][0]).stem if is_one_run else "")
    origin = Origin(experiment=upload.experiment, arm=upload.arm, run=run)
    inputs = [InputFile(partial(_source, name, path), origin, name) for name, path in files]
    options = LoadOptions(replace=upload.replace)

    with _Progress(upload) as progress:
        return load(inputs, form, attempts(form, options), progress, replace=upload.replace)


def _source(name: str, path: Path) -> Source:
    return Source(path.open("rb"), name, most_bytes=settings.UPLOAD_CONTENT_BYTES)


def _format(upload: Upload, files: list[tuple[str, Path]]) -> Format:
    """Return the format: given, or recognised by the beginning of the first file."""
    if upload.format:
        return BY_NAME[upload.format]
    name, path = files[0]
    form = recognised(_source(name, path).head)
    if form is None:
        raise Refused(
            f"{name}: its format is not recognised by its first lines. Select the format, or check "
            "the file (docs/formats.md)."
        )
    return form


class _Progress:
    """Stores the progress through a separate connection: the load is one transaction."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._lines: dict[str, int] = {}
        self._stored = time.monotonic()

    def __enter__(self) -> Self:
        self._connection = connection.copy()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __call__(self, source: Source, account: Account) -> None:
        self._lines[source.name] = account.lines
        if time.monotonic() - self._stored < _PROGRESS_S:
            return
        self._stored = time.monotonic()
        with self._connection.cursor() as cursor:
            cursor.execute(
                "UPDATE experiments_upload SET lines = %s WHERE id = %s",
                [sum(self._lines.values()), self._upload.pk],
            )


def _account(loaded: list[Loaded]) -> str:
    """Return the result in words."""
    if all(each.already for each in loaded):
        return "Loaded before; nothing changed."
    segments = [each.segment for each in loaded]
    lines = sum(segment.lines for segment in segments)
    rejected = sum(segment.rejected for segment in segments)
    text = f"{lines:,} line{'' if lines == 1 else 's'}"
    if not rejected:
        return f"{text}, none rejected."
    reasons: Counter[str] = Counter()
    for segment in segments:
        reasons.update(segment.rejected_by_reason)
    [(most, _)] = reasons.most_common(1)
    return f"{text}, {rejected:,} rejected; the most frequent reason: {most}."


@transaction.atomic
def _finish(upload: Upload, state: Upload.State, message: str) -> None:
    UploadPart.objects.filter(file__upload=upload).delete()
    Upload.objects.filter(pk=upload.pk).update(
        state=state, message=storable(message), finished_at=timezone.now()
    )
    log.info("upload_finished", upload=str(upload.pk), state=str(state))
