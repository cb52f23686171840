"""Registering a site from a TOML document: clusters, NIDs, filesystems, servers and targets.

Tables are read in this order, each with the keys that `_KEYS` lists; what is registered already is
brought up to date, and nothing is ever removed. docs/operations.md, "Registration", shows one.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.dispatch import Signal

from collectors.batch import hostlists
from collectors.batch.values import Unreadable
from ioportal.jobs import names
from ioportal.jobs.models import (
    Cluster,
    Filesystem,
    Nid,
    Server,
    ServerVersion,
    SourceJobId,
    Target,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_KEYS = {
    "cluster": {
        "name", "time_zone", "batch", "simulated", "nodes", "exec_hosts_are_compute_nodes",
        "nid_rule", "nid",
    },
    "cluster.nid_rule": {"network", "node"},
    "cluster.nid": {"nid", "node"},
    "filesystem": {"name", "clusters", "job_id_pattern", "simulated"},
    "server": {"name", "filesystem", "kind", "version"},
    "server.version": {"version", "since"},
    "target": {"name", "filesystem", "server", "kind"},
}  # fmt: skip
_TARGET_KIND = re.compile(r".*-(MDT|OST)[0-9a-fA-F]{4}")

_Thing = TypeVar("_Thing", bound=models.Model)
_Entry = dict[str, Any]


class Unusable(Exception):  # noqa: N818  (a state of the document)
    """The document cannot be registered; the message names the table, the key and the remedy."""


# Sent, in the transaction, after anything was registered: who is charged may have changed.
site_changed = Signal()


@transaction.atomic
def register(document: _Entry) -> list[str]:
    """Register a document as `tomllib` reads it; return a line per table entry."""
    _expect_keys("the document", document, {"cluster", "filesystem", "server", "target"})
    done = []
    for table, store in _TABLES.items():
        for number, entry in enumerate(document.get(table, []), start=1):
            place = f"[[{table}]] {number}"
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise Unusable(f"{place}: give it a name.")
            place = f"[[{table}]] {entry['name']!r}"
            _expect_keys(place, entry, _KEYS[table])
            try:
                store(place, entry)
            except ValidationError as error:
                raise Unusable(f"{place}: {' '.join(error.messages)}") from error
            done.append(f"{table} {entry['name']}")
    site_changed.send(sender=None)
    return done


@transaction.atomic
def apply(thing: models.Model) -> None:
    """Apply what was registered on a page to what was seen before."""
    if isinstance(thing, Cluster):
        _apply_rule(thing)
    elif isinstance(thing, Filesystem):
        _read_job_ids_again(thing)
    site_changed.send(sender=type(thing))


def _cluster(place: str, entry: _Entry) -> None:
    rule = entry.get("nid_rule", {})
    _expect_keys(f"{place} nid_rule", rule, _KEYS["cluster.nid_rule"])
    values = _given(entry, "time_zone", "simulated", "exec_hosts_are_compute_nodes")
    values |= {"batch_system": entry["batch"]} if "batch" in entry else {}
    if rule:
        values |= {"nid_network": rule.get("network", ""), "nid_node_format": rule.get("node", "")}
    cluster = _stored(Cluster, entry["name"], values)
    nodes = names.nodes(cluster)
    try:
        nodes.ids(pl.Series(hostlists.expand(entry.get("nodes", "")), dtype=pl.String))
    except Unreadable as error:
        raise Unusable(f"{place}: nodes: {error}") from error
    table = entry.get("nid", [])
    for row in table:
        _expect_keys(f"{place} nid", row, _KEYS["cluster.nid"])
        if row.keys() != _KEYS["cluster.nid"]:
            raise Unusable(f"{place}: every nid has a nid and a node.")
    node_ids = nodes.ids(pl.Series([row["node"] for row in table], dtype=pl.String))
    Nid.objects.bulk_create(
        [
            Nid(text=row["nid"], node_id=node_id)
            for row, node_id in zip(table, node_ids, strict=True)
        ],
        update_conflicts=True,
        unique_fields=["text"],
        update_fields=["node"],
    )
    _apply_rule(cluster)


def _apply_rule(cluster: Cluster) -> None:
    """Give NIDs that were seen before the rule was registered their nodes."""
    if not cluster.nid_network:
        return
    ruled = {
        nid: name
        for nid in Nid.objects.filter(node=None, text__endswith=f"@{cluster.nid_network}")
        if (name := names.ruled_node(cluster, nid.text))
    }
    node_ids = names.nodes(cluster).ids(pl.Series(list(ruled.values()), dtype=pl.String))
    for nid, node_id in zip(ruled, node_ids, strict=True):
        nid.node_id = node_id
    Nid.objects.bulk_update(ruled, ["node"], batch_size=1_000)


def _filesystem(place: str, entry: _Entry) -> None:
    filesystem = _stored(Filesystem, entry["name"], _given(entry, "simulated", "job_id_pattern"))
    if "clusters" in entry:
        filesystem.clusters.set([_registered(place, Cluster, name) for name in entry["clusters"]])
    _read_job_ids_again(filesystem)


def _read_job_ids_again(filesystem: Filesystem) -> None:
    """Read the job ids that were seen so far with the filesystem's pattern of now."""
    pattern = re.compile(filesystem.job_id_pattern)
    changed = []
    for job_id in SourceJobId.objects.filter(filesystem=filesystem):
        parts = names.read_job_id(pattern, job_id.text)
        if any(getattr(job_id, name) != part for name, part in parts.items()):
            for name, part in parts.items():
                setattr(job_id, name, part)
            changed.append(job_id)
    SourceJobId.objects.bulk_update(
        changed, ["batch_id", "array_index", "launch"], batch_size=1_000
    )


def _server(place: str, entry: _Entry) -> None:
    server = _stored(
        Server,
        entry["name"],
        {
            "filesystem": _registered(place, Filesystem, entry.get("filesystem")),
            "kind": entry.get("kind", Server.Kind.MDS),
        },
    )
    for version in entry.get("version", []):
        _expect_keys(f"{place} version", version, _KEYS["server.version"])
        ServerVersion.objects.update_or_create(
            server=server,
            since=_moment(place, version.get("since")),
            defaults={"version": str(version.get("version", ""))},
        )


def _target(place: str, entry: _Entry) -> None:
    kind = _TARGET_KIND.fullmatch(entry["name"])
    server = entry.get("server")
    _stored(
        Target,
        entry["name"],
        {
            "filesystem": _registered(place, Filesystem, entry.get("filesystem")),
            "server": _registered(place, Server, server) if server else None,
            "kind": entry.get("kind", kind[1].lower() if kind else ""),
        },
    )


_TABLES: dict[str, Callable[[str, _Entry], None]] = {
    "cluster": _cluster,
    "filesystem": _filesystem,
    "server": _server,
    "target": _target,
}


def _given(entry: _Entry, *keys: str) -> _Entry:
    """Return the keys that an entry has: what it does not mention stays as it is."""
    return {key: entry[key] for key in keys if key in entry}


def _expect_keys(place: str, entry: object, keys: set[str]) -> None:
    if not isinstance(entry, dict):
        raise Unusable(f"{place}: is not a table.")
    if unknown := sorted(entry.keys() - keys):
        raise Unusable(
            f"{place}: no such key: {', '.join(unknown)}. Keys: {', '.join(sorted(keys))}."
        )


def _stored(model: type[_Thing], name: str, values: dict[str, Any]) -> _Thing:
    """Create or update by name, with the model's own validation."""
    thing = _manager(model).filter(name=name).first() or model(name=name)
    for key, value in values.items():
        setattr(thing, key, value)
    thing.full_clean()
    thing.save()
    return thing


def _registered(place: str, model: type[_Thing], name: str | None) -> _Thing:
    kind = model.__name__.lower()
    found = _manager(model).filter(name=name).first() if name else None
    if found is None:
        raise Unusable(
            f"{place}: {kind} {name!r} is not registered; give it a [[{kind}]] of its own."
        )
    return found


def _manager(model: type[_Thing]) -> models.Manager[_Thing]:
    return model._default_manager  # noqa: SLF001  (Django's documented manager)


def _moment(place: str, value: object) -> datetime:
    """Read a TOML date or time; one without a zone is UTC."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise Unusable(f"{place}: since = {value!r} is not a date.")
