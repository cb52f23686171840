"""Digests of files: a file that is loaded again has the digest of its segment."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ioportal.ingest.models import Segment

if TYPE_CHECKING:
    from collectors.format import Format
    from collectors.source import Source
    from ioportal.ingest.loading import InputFile, Origin

_NAME_CHARACTERS = 1_024


def digest_before(file: InputFile, form: Format, *, alone: bool) -> str:
    """Read a file through and return its digest; "" if that is impossible or not worthwhile.

    A single file with a new name is most likely new.
    """
    if file.name is None:
        return ""
    segments = Segment.objects.filter(format=form.name, name=stored_name(file.name))
    if alone and not segments.exists():
        return ""
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
