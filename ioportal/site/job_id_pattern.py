"""The pattern of a filesystem's job ids: its validation, and the parts of a job id by it.

The pattern itself is `Filesystem.job_id_pattern`.
"""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

_PART_CHARACTERS = 64  # the length of the columns of jobs
_NO_PARTS = {"batch_id": "", "array_index": "", "launch": ""}


def validate_job_id_pattern(pattern: str) -> None:
    """Refuse a pattern that is no regular expression or has no group for a job."""
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValidationError(f"{pattern!r} is not a regular expression: {error}.") from error
    if not {"batch_id", "launch"} & groups.keys():
        raise ValidationError(
            "The pattern needs a group (?P<batch_id>...) or (?P<launch>...) for the job."
        )


def read_job_id(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    """Return the parts of a job id by `pattern`; all empty for a process name."""
    match = pattern.fullmatch(text)
    groups = match.groupdict() if match else {}
    parts = {name: groups.get(name) or "" for name in ("batch_id", "array_index", "launch")}
    return parts if all(len(part) <= _PART_CHARACTERS for part in parts.values()) else _NO_PARTS
