"""Users of processes: ids like 'du.4711' (`jobid_var=procname_uid`) end with the user id.

A client's kernel sets these ids, but where job ids come from the environment any user can invent
one: they name a user, and prove nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROCESS = re.compile(r".+\.(?P<uid>[0-9]{1,10})", re.DOTALL)
# The same in SQL, for `site_sourcejobid s`; null: without a user id.
UID_OF_TEXT: Final = r"substring(s.text from '\.([0-9]{1,10})$')::bigint"
# The key of all processes of its user, who can change their names; of root's, only of itself.
KEY_OF_TEXT: Final = f"coalesce(-1 - nullif({UID_OF_TEXT}, 0), s.id)"


def uid_of(text: str) -> int | None:
    """Return the user id in the name of a process."""
    match = _PROCESS.fullmatch(text)
    return int(match["uid"]) if match else None


def users(texts: Iterable[str]) -> dict[str, str]:
    """Return the registered users of processes by the names of the processes."""
    uids = {text: uid for text in texts if (uid := uid_of(text)) is not None}
    names = users_by_uid(uids.values())
    return {text: names[uid] for text, uid in uids.items() if uid in names}


def users_by_uid(uids: Iterable[int]) -> dict[int, str]:
    """Return the registered users of some user ids."""
    wanted = set(uids)
    if not wanted:
        return {}
    rows = UserAccount.objects.filter(uid__in=wanted).values_list("uid", "name")
    return {uid: name for uid, name in rows if uid is not None}


def key_of_uid(uid: int) -> int:
    """Return the key that stands for all processes of a user id: negative, unlike a job id's."""
    return -1 - uid


def uid_of_key(key: int) -> int | None:
    """Return the user id that a key stands for; None: the key of a single process."""
    return -1 - key if key < 0 else None
