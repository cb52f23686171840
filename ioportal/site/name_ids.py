"""Integer ids of names in telemetry (NIDs, nodes, services, counters, job ids).

New names are added under one lock until the transaction ends: two loads that add the same names in
different order would otherwise deadlock.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from django.db import connection, models, transaction

from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.site.job_id_pattern import read_job_id
from ioportal.site.models import Cluster, Counter, Nid, Node, Service, SourceJobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ioportal.site.models import Filesystem

_BATCH = 5_000
_CACHE_SIZE = 500_000  # entries per table: about 50 MB
_CACHES: dict[tuple[object, ...], dict[str, int]] = {}
NID_CHARACTERS = 128
SERVICE_CHARACTERS = 32
COUNTER_CHARACTERS = 64
SOURCE_JOB_ID_CHARACTERS = 255
_NID_NUMBER = re.compile(r"[0-9]{1,9}")


class NameIds:
    """The ids of names in one table, looked up by column.

    Args:
        model: the table.
        lookup: returns the ids of those names that the table has.
        add: adds names to the table.
        parent: the cluster or filesystem of the names, if any.
    """

    def __init__(
        self,
        model: type[models.Model],
        lookup: Callable[[list[str]], dict[str, int]],
        add: Callable[[list[str]], None],
        parent: models.Model | None = None,
    ) -> None:
        self._model = model
        self._lookup = lookup
        self._add = add
        self._parent = parent
        self._ids: dict[str, int] = {}

    def ids(self, names: pl.Series) -> pl.Series:
        """Return the id of each name; new names are added."""
        unique = names.unique()
        texts = unique.to_list()
        missing = [text for text in texts if text not in self._ids]
        if missing:
            self._ids |= self._fetch(missing)
        ids = pl.Series([self._ids[text] for text in texts], dtype=pl.Int32)
        return names.replace_strict(unique, ids)

    def _fetch(self, names: list[str]) -> dict[str, int]:
        cache = self._cache
        ids = {name: cache[name] for name in names if name in cache}
        uncached = sorted(name for name in names if name not in ids)
        if uncached:
            stored = self._lookup(uncached)
            new = [name for name in uncached if name not in stored]
            if new:
                lock()
                self._add(new)
                stored |= self._lookup(new)
            # Only once committed: a rolled-back id must not stay in the cache.
            transaction.on_commit(lambda: _store(cache, stored))
            ids |= stored
        return ids

    @cached_property
    def _cache(self) -> dict[str, int]:
        """This process's cache: the id of a committed name never changes.

        The key has the table's file node, which changes with TRUNCATE and with a restored backup.
        """
        table = self._model._meta.db_table  # noqa: SLF001  (Django's documented meta API)
        parent = self._parent and self._parent.pk
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_database(), pg_relation_filenode(%s)", [table])
            return _CACHES.setdefault((table, parent, *cursor.fetchone()), {})


def _store(cache: dict[str, int], ids: dict[str, int]) -> None:
    if len(cache) + len(ids) > _CACHE_SIZE:
        cache.clear()
    cache |= ids


def lock() -> None:
    """Lock the addition of names until this transaction ends."""
    hold(Lock.NAMES)


def storable(column: pl.Expr, characters: int) -> pl.Expr:
    """Return a text column fit for the database: truncated, and without NUL characters."""
    return column.str.replace_all("\x00", "\ufffd", literal=True).str.slice(0, characters)


def nids() -> NameIds:
    """NIDs; a new NID gets its node by its cluster's rule, if there is one."""
    return NameIds(Nid, _lookup(Nid.objects.all(), "text"), _add_nids)


def nodes(cluster: Cluster) -> NameIds:
    """Nodes of a cluster."""
    return NameIds(
        Node,
        _lookup(Node.objects.filter(cluster=cluster), "name"),
        lambda new: _add_nodes(cluster, new),
        parent=cluster,
    )


def services() -> NameIds:
    """Thread-name bases."""
    return NameIds(
        Service,
        _lookup(Service.objects.all(), "name"),
        lambda new: _create(Service(name=name) for name in new),
    )


def counters() -> NameIds:
    """Counters of services."""
    return NameIds(
        Counter,
        _lookup(Counter.objects.all(), "name"),
        lambda new: _create(Counter(name=name) for name in new),
    )


def source_job_ids(filesystem: Filesystem) -> NameIds:
    """Job ids as sent by the clients of a filesystem; an empty id is 0."""
    stored = _lookup(SourceJobId.objects.filter(filesystem=filesystem), "text")

    def lookup(names: list[str]) -> dict[str, int]:
        return {"": 0} | stored(names)

    def add(new: list[str]) -> None:
        pattern = filesystem.job_id_pattern
        _create(
            SourceJobId(filesystem=filesystem, text=text, **read_job_id(pattern, text))
            for text in new
        )

    return NameIds(SourceJobId, lookup, add, parent=filesystem)


def ruled_node(cluster: Cluster, nid: str) -> str | None:
    """Return the node of a NID by the cluster's rule; None if the rule does not apply."""
    number, _, network = nid.rpartition("@")
    if network != cluster.nid_network or not _NID_NUMBER.fullmatch(number):
        return None
    return cluster.nid_node_format.format(number=int(number))


class _Each(models.Func):
    """Many texts as one parameter: faster to send and to plan than a long list."""

    template = "(SELECT unnest(%(expressions)s::text[]))"
    output_field = models.TextField()


def _lookup(
    rows: models.QuerySet[models.Model], column: str
) -> Callable[[list[str]], dict[str, int]]:
    def lookup(names: list[str]) -> dict[str, int]:
        matches = {f"{column}__in": _Each(models.Value(names))}
        return dict(rows.filter(**matches).values_list(column, "pk"))

    return lookup


def _create(rows: Iterable[models.Model]) -> None:
    rows = list(rows)
    type(rows[0])._default_manager.bulk_create(  # noqa: SLF001  (Django's documented manager)
        rows, batch_size=_BATCH, ignore_conflicts=True
    )


def _add_nodes(cluster: Cluster, new: list[str]) -> None:
    """Add nodes in one statement: a record of a whole machine may name 100,000."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO site_node (cluster_id, name, forwards) "
            "SELECT %s, unnest(%s::text[]), false ON CONFLICT DO NOTHING",
            [cluster.pk, new],
        )


def _add_nids(new: list[str]) -> None:
    node_of: dict[str, int] = {}
    for cluster in Cluster.objects.exclude(nid_network=""):
        ruled = {nid: name for nid in new if (name := ruled_node(cluster, nid))}
        ids = nodes(cluster).ids(pl.Series(list(ruled.values()), dtype=pl.String))
        node_of |= dict(zip(ruled, ids, strict=True))
    _create(Nid(text=nid, node_id=node_of.get(nid)) for nid in new)
