"""Names that telemetry carries (NIDs, job ids, services) and the small numbers that stand for them.

New names are added under one lock until the transaction ends: two loads that meet each other's new
names in different order would otherwise wait for each other for ever.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from django.db import connection, models, transaction

from ioportal.site.models import Cluster, Counter, Nid, Node, Service, SourceJobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ioportal.site.models import Filesystem

_NAMES_LOCK = 7_301  # any number that no other advisory lock uses
_BATCH = 5_000
_MOST_KEPT = 500_000  # of each table: some 50 MB
_KEPT: dict[tuple[object, ...], dict[str, int]] = {}
NID_CHARACTERS = 128
SERVICE_CHARACTERS = 32
COUNTER_CHARACTERS = 64
SOURCE_JOB_ID_CHARACTERS = 255
_PART_CHARACTERS = 64  # what is longer names no job that the database holds
_NO_PARTS = {"batch_id": "", "array_index": "", "launch": ""}
_NID_NUMBER = re.compile(r"[0-9]{1,9}")


class Names:
    """A growing table of names to numbers, looked up column-wise.

    Args:
        model: its rows are names with their numbers.
        known: numbers of those of some names that the database has.
        add: puts names that it lacks into the database.
        of: what the names are names within.
    """

    def __init__(
        self,
        model: type[models.Model],
        known: Callable[[list[str]], dict[str, int]],
        add: Callable[[list[str]], None],
        of: models.Model | None = None,
    ) -> None:
        self._model = model
        self._known = known
        self._add = add
        self._of = of
        self._ids: dict[str, int] = {}

    def ids(self, names: pl.Series) -> pl.Series:
        """Return the number of each name, adding those that are new."""
        different = names.unique()
        texts = different.to_list()
        missing = [text for text in texts if text not in self._ids]
        if missing:
            self._ids |= self._look_up(missing)
        ids = pl.Series([self._ids[text] for text in texts], dtype=pl.Int32)
        return names.replace_strict(different, ids)

    def _look_up(self, missing: list[str]) -> dict[str, int]:
        kept = self._kept
        found = {name: kept[name] for name in missing if name in kept}
        asked = sorted(name for name in missing if name not in found)
        if asked:
            known = self._known(asked)
            new = [name for name in asked if name not in known]
            if new:
                lock()
                self._add(new)
                known |= self._known(new)
            # Not before: what is taken back was never known.
            transaction.on_commit(lambda: _keep(kept, known))
            found |= known
        return found

    @cached_property
    def _kept(self) -> dict[str, int]:
        """What this process found before: a name that is committed never changes its number.

        A table that was emptied, or came out of a backup, is another file.
        """
        table = self._model._meta.db_table  # noqa: SLF001  (Django's documented meta API)
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_database(), pg_relation_filenode(%s)", [table])
            return _KEPT.setdefault((table, self._of and self._of.pk, *cursor.fetchone()), {})


def _keep(kept: dict[str, int], found: dict[str, int]) -> None:
    if len(kept) + len(found) > _MOST_KEPT:
        kept.clear()
    kept |= found


def lock() -> None:
    """Wait until no other transaction adds names, and keep others from it until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_NAMES_LOCK])


def storable(column: pl.Expr, characters: int) -> pl.Expr:
    """Return a text column as the database can hold it: cut, and without NUL characters."""
    return column.str.replace_all("\x00", "\ufffd", literal=True).str.slice(0, characters)


def nids() -> Names:
    """NIDs; a new one gets its node by its cluster's rule, if there is one."""
    return Names(Nid, _lookup(Nid.objects.all(), "text"), _add_nids)


def nodes(cluster: Cluster) -> Names:
    """Nodes of a cluster."""
    return Names(
        Node,
        _lookup(Node.objects.filter(cluster=cluster), "name"),
        lambda new: _create(Node(cluster=cluster, name=name) for name in new),
        of=cluster,
    )


def services() -> Names:
    """Thread-name bases."""
    return Names(
        Service,
        _lookup(Service.objects.all(), "name"),
        lambda new: _create(Service(name=name) for name in new),
    )


def counters() -> Names:
    """What services count."""
    return Names(
        Counter,
        _lookup(Counter.objects.all(), "name"),
        lambda new: _create(Counter(name=name) for name in new),
    )


def source_job_ids(filesystem: Filesystem) -> Names:
    """Job ids as the clients of a filesystem send them; the empty one is 0."""
    lookup = _lookup(SourceJobId.objects.filter(filesystem=filesystem), "text")

    def known(names: list[str]) -> dict[str, int]:
        return {"": 0} | lookup(names)

    def add(new: list[str]) -> None:
        pattern = re.compile(filesystem.job_id_pattern)
        _create(
            SourceJobId(filesystem=filesystem, text=text, **read_job_id(pattern, text))
            for text in new
        )

    return Names(SourceJobId, known, add, of=filesystem)


def read_job_id(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    """Return the parts of a job id that `pattern` finds; none where it is a process name."""
    match = pattern.fullmatch(text)
    found = match.groupdict() if match else {}
    parts = {name: found.get(name) or "" for name in ("batch_id", "array_index", "launch")}
    return parts if all(len(part) <= _PART_CHARACTERS for part in parts.values()) else _NO_PARTS


def ruled_node(cluster: Cluster, nid: str) -> str | None:
    """Return the node that a cluster's rule makes of a NID; None where it says nothing."""
    number, _, network = nid.rpartition("@")
    if network != cluster.nid_network or not _NID_NUMBER.fullmatch(number):
        return None
    return cluster.nid_node_format.format(number=int(number))


class _Each(models.Func):
    """Each of many texts, given as one parameter: quicker to send and to plan than a long list."""

    template = "(SELECT unnest(%(expressions)s::text[]))"
    output_field = models.TextField()


def _lookup(
    rows: models.QuerySet[models.Model], column: str
) -> Callable[[list[str]], dict[str, int]]:
    def known(names: list[str]) -> dict[str, int]:
        asked = {f"{column}__in": _Each(models.Value(names))}
        return dict(rows.filter(**asked).values_list(column, "pk"))

    return known


def _create(rows: Iterable[models.Model]) -> None:
    rows = list(rows)
    type(rows[0])._default_manager.bulk_create(  # noqa: SLF001  (Django's documented manager)
        rows, batch_size=_BATCH, ignore_conflicts=True
    )


def _add_nids(new: list[str]) -> None:
    node_of: dict[str, int] = {}
    for cluster in Cluster.objects.exclude(nid_network=""):
        ruled = {nid: name for nid in new if (name := ruled_node(cluster, nid))}
        ids = nodes(cluster).ids(pl.Series(list(ruled.values()), dtype=pl.String))
        node_of |= dict(zip(ruled, ids, strict=True))
    _create(Nid(text=nid, node_id=node_of.get(nid)) for nid in new)
