"""The pattern of a filesystem's job ids: its validation, and the parts of a job id by it.

The pattern itself is `Filesystem.job_id_pattern`. RE2 evaluates it: any user can choose a job id,
and the time of RE2 is linear in its length.
"""

from __future__ import annotations

from functools import lru_cache

import re2
from django.core.exceptions import ValidationError

_PART_CHARACTERS = 64  # the length of the columns of jobs
_NAMES = ("batch_id", "array_index", "launch", "host")
_NO_PARTS: dict[str, str | int | None] = {**dict.fromkeys(_NAMES, ""), "uid": None}
JOB_ID_PARTS = (*_NAMES, "uid")
LARGEST_UID = 2**32 - 1
NOBODY = -1
LUSTRE_CHARACTERS = 31  # LUSTRE_JOBID_SIZE, without the terminating NUL


def validate_job_id_pattern(pattern: str) -> None:
    """Refuse a pattern that RE2 cannot evaluate or that has no group for a job."""
    try:
        groups = _compiled(pattern).groupindex
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise ValidationError(
            f"{pattern!r} is not a regular expression of RE2: {reason}. Look-arounds, back "
            "references and possessive quantifiers are not available."
        ) from error
    if not {"batch_id", "launch"} & groups.keys():
        raise ValidationError(
            "The pattern needs a group (?P<batch_id>...) or (?P<launch>...) for the job."
        )


def read_job_id(pattern: str, text: str) -> dict[str, str | int | None]:
    """Return the parts of a job id by `pattern`; all empty for a process name.

    `uid` and `host`, which the client's kernel adds, are the evidence for the job: None and "" if
    the pattern has no such groups. An id as long as Lustre stores is a process name then: its
    evidence may be cut off. So is every id if the pattern is invalid, which a check reports.
    """
    try:
        match = _compiled(pattern).fullmatch(text)
    except re2.error:
        return _NO_PARTS
    groups = match.groupdict() if match else {}
    parts = {name: groups.get(name) or "" for name in _NAMES}
    uid = _uid(groups["uid"] or "") if "uid" in groups else None
    if not (parts["batch_id"] or parts["launch"]):
        return _NO_PARTS
    if groups.keys() & {"uid", "host"} and len(text) >= LUSTRE_CHARACTERS:
        return _NO_PARTS
    if any(len(part) > _PART_CHARACTERS for part in parts.values()):
        return _NO_PARTS
    return {**parts, "uid": uid}


def has_uid(pattern: str) -> bool:
    """Return whether job ids contain the user id, which the client's kernel adds."""
    try:
        return "uid" in _compiled(pattern).groupindex
    except re2.error:
        return False


@lru_cache
def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False  # the caller reports them
    return re2.compile(pattern, options)


def _uid(digits: str) -> int:
    """Return a user id; if it is unreadable, an id that no user has."""
    readable = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(LARGEST_UID))
    return int(digits) if readable and int(digits) <= LARGEST_UID else NOBODY
