"""Registration of a site from a TOML document: clusters, filesystems, servers, sources, people.

Tables are read in this order, with the keys in `KEYS`. Existing entries are updated; nothing is
removed. Example: docs/operations.md, "Registration".
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models, transaction
from django.db.models import Q
from django.dispatch import Signal

from collectors.batch import hostlists
from collectors.batch.values import Unreadable
from collectors.lustre.targets import TargetName, folded
from ioportal.site import name_ids
from ioportal.site.document_keys import KEYS, InvalidDocument, expect_keys
from ioportal.site.job_id_pattern import JOB_ID_PARTS, read_job_id
from ioportal.site.models import (
    Cluster,
    Filesystem,
    Nid,
    Node,
    Project,
    Server,
    ServerVersion,
    Source,
    SourceJobId,
    Target,
    UserAccount,
)
from ioportal.telemetry.free_space import require_space

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_NID = re.compile(rf"(?=.{{1,{name_ids.NID_CHARACTERS}}}$)[^\s@\0]+@\w+", re.ASCII)

_PREFIXES_SHOWN = 10

_Thing = TypeVar("_Thing", bound=models.Model)
_Entry = dict[str, Any]


# Sent in the transaction of a registration that affects attribution, with `nids`: the primary keys
# of the NIDs that have another node; None: anything may be attributed differently.
site_changed = Signal()


@transaction.atomic
def register(document: _Entry) -> list[str]:
    """Register a document as `tomllib` reads it; return a line per table entry."""
    require_space()
    expect_keys("the document", document, KEYS[""])
    name_ids.lock()
    for model in (Server, Target):  # in the order of loads, which lock some of them
        list(model.objects.select_for_update().order_by("pk").values_list("pk"))
    nids_before, before = _nodes_of_nids(), _attribution_facts()
    registered = []
    for table, store in _TABLES.items():
        for number, entry in enumerate(document.get(table, []), start=1):
            place = f"[[{table}]] {number}"
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise InvalidDocument(f"{place}: give it a name.")
            place = f"[[{table}]] {entry['name']!r}"
            expect_keys(place, entry, KEYS[table])
            try:
                store(place, entry)
            except ValidationError as error:
                raise InvalidDocument(f"{place}: {_messages(error)}") from error
            registered.append(f"{table} {entry['name']}")
    nids_after, after = _nodes_of_nids(), _attribution_facts()
    if any(after[fact] != value for fact, value in before.items()):
        site_changed.send(sender=None, nids=None)
    elif changed := {nid for nid, _ in nids_before.items() ^ nids_after.items()}:
        site_changed.send(sender=None, nids=changed)
    return registered


def add_targets(target_names: Collection[str], filesystem: Filesystem | None) -> list[Target]:
    """Register MDTs and OSTs by name, without servers.

    Args:
        target_names: unregistered targets.
        filesystem: their filesystem; None: the prefix of each name.

    Raises:
        InvalidDocument: a name is not a target name, or its filesystem is not registered.
    """
    parsed = {name: TargetName.parse(name) for name in target_names}
    if wrong := [name for name, parts in parsed.items() if parts is None]:
        raise InvalidDocument(
            f"Not target names such as lake-OST0001: {folded(wrong)}. Register them as [[target]]."
        )
    parts_of = {name: parts for name, parts in parsed.items() if parts}
    prefixes = sorted({parts.filesystem for parts in parts_of.values()})
    if filesystem is None:
        filesystems = {row.name: row for row in Filesystem.objects.filter(name__in=prefixes)}
        if missing := [prefix for prefix in prefixes if prefix not in filesystems]:
            raise InvalidDocument(
                f"Filesystem {', '.join(missing[:_PREFIXES_SHOWN])} is not registered. Add it as "
                "[[filesystem]], or name the registered one with --filesystem."
            )
    elif len(prefixes) > 1:
        raise InvalidDocument(
            f"The targets belong to {len(prefixes)} filesystems: "
            f"{', '.join(prefixes[:_PREFIXES_SHOWN])}. Load one at a time."
        )
    else:
        filesystems = dict.fromkeys(prefixes, filesystem)
    name_ids.lock()  # until the commit: loads add targets in any order
    Target.objects.bulk_create(
        [
            Target(name=name, kind=parts.kind.lower(), filesystem=filesystems[parts.filesystem])
            for name, parts in parts_of.items()
        ],
        ignore_conflicts=True,  # registered meanwhile
    )
    return list(Target.objects.filter(name__in=parts_of).select_related("filesystem"))


def _messages(error: ValidationError) -> str:
    """Return the messages, each with its field."""
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(
        message if field == NON_FIELD_ERRORS else f"{field}: {message}"
        for field, messages in error.message_dict.items()
        for message in messages
    )


@transaction.atomic
def apply(thing: models.Model, changed: Collection[str]) -> None:
    """Apply an object that was registered on a page, and its changed fields, to existing data."""
    if isinstance(thing, Cluster):
        _apply_rule(thing)
    elif isinstance(thing, Filesystem):
        _read_job_ids_again(thing)
    elif isinstance(thing, Nid):
        thing.registered = thing.node_id is not None
        thing.save(update_fields=["registered"])
    elif isinstance(thing, UserAccount) and "email" in changed:
        thing.next_lookup_at = None
        thing.save(update_fields=["next_lookup_at"])
    if isinstance(thing, Nid):
        site_changed.send(sender=Nid, nids={thing.pk})
    elif changed and _affects_attribution(thing, changed):
        site_changed.send(sender=type(thing), nids=None)


def _affects_attribution(thing: models.Model, changed: Collection[str]) -> bool:
    if isinstance(thing, UserAccount):
        return bool({"name", "uid"} & set(changed))
    return not isinstance(thing, Project | Source)


def _cluster(place: str, entry: _Entry) -> None:
    rule = entry.get("nid_rule", {})
    expect_keys(f"{place} nid_rule", rule, KEYS["cluster.nid_rule"])
    values = _subset(
        entry, "time_zone", "simulated", "exec_hosts_are_compute_nodes", "cores_per_node"
    )
    values |= {"batch_system": entry["batch"]} if "batch" in entry else {}
    if rule:
        values |= {"nid_network": rule.get("network", ""), "nid_node_format": rule.get("node", "")}
    cluster = _stored(Cluster, entry["name"], values)
    nodes = name_ids.nodes(cluster)
    nodes.ids(_hosts(place, entry, "nodes"))
    if "forwarding_nodes" in entry:
        forwarding = nodes.ids(_hosts(place, entry, "forwarding_nodes")).to_list()
        cluster.nodes.filter(forwards=True).update(forwards=False)
        cluster.nodes.filter(pk__in=forwarding).update(forwards=True)
    node_of = _nids(f"{place} nid", entry.get("nid", []))
    node_ids = nodes.ids(pl.Series(list(node_of.values()), dtype=pl.String))
    Nid.objects.bulk_create(
        [
            Nid(text=nid, node_id=node_id, registered=True)
            for nid, node_id in zip(node_of, node_ids, strict=True)
        ],
        update_conflicts=True,
        unique_fields=["text"],
        update_fields=["node", "registered"],
    )
    _apply_rule(cluster)


def _hosts(place: str, entry: _Entry, key: str) -> pl.Series:
    """Return the names in a hostlist of an entry."""
    try:
        return pl.Series(hostlists.expand(entry.get(key, "")), dtype=pl.String)
    except Unreadable as error:
        raise InvalidDocument(f"{place}: {key}: {error}") from error


def _nodes_of_nids() -> dict[int, int | None]:
    """Return the nodes of all NIDs."""
    return dict(Nid.objects.values_list("pk", "node_id"))


_WHOLE = "whole"
# Columns of registered objects that attribution or statistics of existing data use. New objects
# have no data yet, so only changes count.
_FACTS: dict[type[models.Model], tuple[str, ...]] = {
    Cluster: ("time_zone", "batch_system", "exec_hosts_are_compute_nodes", "cores_per_node"),
    Filesystem: ("job_id_pattern",),
    Server: ("filesystem_id", "kind", "capacity_per_s"),
    Target: ("filesystem_id", "server_id", "kind", "job_cleanup_interval"),
}


def _attribution_facts() -> dict[object, object]:
    """Return what attribution uses: by object, and the sets that count as a whole."""
    facts: dict[object, object] = {
        (model, row[0]): row[1:]
        for model, columns in _FACTS.items()
        for row in _manager(model).values_list("pk", *columns)
    }
    facts[_WHOLE] = [
        set(query)
        for query in (
            UserAccount.objects.exclude(uid=None).values_list("name", "uid"),
            Node.objects.filter(forwards=True).values_list("pk"),
            Filesystem.clusters.through.objects.values_list("filesystem_id", "cluster_id"),
            ServerVersion.objects.values_list("server_id", "version", "since"),
        )
    ]
    return facts


def _nids(place: str, table: list[_Entry]) -> dict[str, str]:
    """Return the host name of each NID in a table."""
    node_of: dict[str, str] = {}
    for row in table:
        expect_keys(place, row, KEYS["cluster.nid"])
        if row.keys() != KEYS["cluster.nid"].keys():
            raise InvalidDocument(f"{place}: each entry needs a nid and a node.")
        nid, node = row["nid"], row["node"]
        if not _NID.fullmatch(nid):
            raise InvalidDocument(f"{place}: {nid!r} is not a NID like '10.1.2.3@o2ib'.")
        if nid in node_of:
            raise InvalidDocument(f"{place}: duplicate NID {nid!r}.")
        try:
            [node_of[nid]] = hostlists.expand(node)
        except (Unreadable, ValueError) as error:
            raise InvalidDocument(f"{place}: {node!r} is not a host name.") from error
    return node_of


def _apply_rule(cluster: Cluster) -> None:
    """Map existing NIDs to nodes by the cluster's rule."""
    ruled = {
        nid: name_ids.ruled_node(cluster, nid.text)
        for nid in Nid.objects.filter(
            Q(text__endswith=f"@{cluster.nid_network}") | Q(node__cluster=cluster),
            registered=False,
        )
    }
    nodes = pl.Series([name for name in ruled.values() if name], dtype=pl.String)
    node_ids = dict(zip(nodes, name_ids.nodes(cluster).ids(nodes), strict=True))
    for nid, name in ruled.items():
        nid.node_id = node_ids.get(name)
    Nid.objects.bulk_update(ruled, ["node"], batch_size=1_000)


def _filesystem(place: str, entry: _Entry) -> None:
    filesystem = _stored(Filesystem, entry["name"], _subset(entry, "simulated", "job_id_pattern"))
    if "clusters" in entry:
        filesystem.clusters.set([_registered(place, Cluster, name) for name in entry["clusters"]])
    _read_job_ids_again(filesystem)


def _read_job_ids_again(filesystem: Filesystem) -> None:
    """Parse existing job ids with the filesystem's current pattern."""
    changed = []
    for job_id in SourceJobId.objects.filter(filesystem=filesystem):
        parts = read_job_id(filesystem.job_id_pattern, job_id.text)
        if any(getattr(job_id, name) != part for name, part in parts.items()):
            for name, part in parts.items():
                setattr(job_id, name, part)
            changed.append(job_id)
    SourceJobId.objects.bulk_update(changed, JOB_ID_PARTS, batch_size=1_000)


def _server(place: str, entry: _Entry) -> None:
    server = _stored(
        Server,
        entry["name"],
        {
            "filesystem": _registered(place, Filesystem, entry.get("filesystem")),
            "kind": entry.get("kind", Server.Kind.MDS),
            **_subset(entry, "capacity_per_s"),
        },
    )
    for version in entry.get("version", []):
        expect_keys(f"{place} version", version, KEYS["server.version"])
        since = _moment(place, version.get("since"))
        existing = ServerVersion.objects.filter(server=server, since=since).first()
        _validated(
            existing or ServerVersion(server=server, since=since),
            {"version": version.get("version", "")},
        )


def _target(place: str, entry: _Entry) -> None:
    name = TargetName.parse(entry["name"])
    kind = entry.get("kind", name.kind.lower() if name else None)
    if kind is None:
        raise InvalidDocument(f"{place}: unknown kind. Set kind = 'mdt' or 'ost'.")
    server = entry.get("server")
    _stored(
        Target,
        entry["name"],
        {
            "filesystem": _registered(place, Filesystem, entry.get("filesystem")),
            "server": _registered(place, Server, server) if server else None,
            "kind": kind,
            **_cleanup_interval(place, entry),
        },
    )


def _cleanup_interval(place: str, entry: _Entry) -> _Entry:
    """Return `job_cleanup_interval` as a duration, if the entry has it in seconds."""
    if "job_cleanup_interval" not in entry:
        return {}
    seconds = entry["job_cleanup_interval"]
    try:
        return {"job_cleanup_interval": timedelta(seconds=seconds)}
    except OverflowError as error:
        raise InvalidDocument(f"{place}: job_cleanup_interval = {seconds} is too long.") from error


def _source(place: str, entry: _Entry) -> None:
    kinds = {"cluster": Cluster, "filesystem": Filesystem, "server": Server}
    scope = {
        key: _registered(place, kind, entry[key]) for key, kind in kinds.items() if key in entry
    }
    # A new scope replaces the previous one.
    values = {**dict.fromkeys(kinds), **scope} if scope else {}
    _stored(Source, entry["name"], values | _subset(entry, "format", "poll_interval_s"))


def _user(place: str, entry: _Entry) -> None:
    if not all(isinstance(project, str) for project in entry.get("projects", [])):
        raise InvalidDocument(f"{place}: projects must be strings.")
    values = _subset(entry, *KEYS["user"])
    if "email" in values:  # a registered address is not looked up
        values["next_lookup_at"] = None
    _stored(UserAccount, entry["name"], values)


def _project(place: str, entry: _Entry) -> None:
    values = _subset(entry, "contact", "email")
    if "user" in entry:
        user = entry["user"]
        values["account"] = _registered(place, UserAccount, user, "user") if user else None
    _stored(Project, entry["name"], values)


_TABLES: dict[str, Callable[[str, _Entry], None]] = {
    "cluster": _cluster,
    "filesystem": _filesystem,
    "server": _server,
    "target": _target,
    "source": _source,
    "user": _user,
    "project": _project,
}


def _subset(entry: _Entry, *keys: str) -> _Entry:
    """Return those keys that an entry has; the others stay unchanged."""
    return {key: entry[key] for key in keys if key in entry}


def _stored(model: type[_Thing], name: str, values: dict[str, Any]) -> _Thing:
    """Create or update by name, validate and save."""
    return _validated(_manager(model).filter(name=name).first() or model(name=name), values)


def _validated(thing: _Thing, values: dict[str, Any]) -> _Thing:
    """Set values, validate and save."""
    for key, value in values.items():
        setattr(thing, key, value)
    thing.full_clean()
    thing.save()
    return thing


def _registered(place: str, model: type[_Thing], name: object, table: str = "") -> _Thing:
    kind = table or model.__name__.lower()
    row = _manager(model).filter(name=name).first() if isinstance(name, str) else None
    if row is None:
        raise InvalidDocument(f"{place}: {kind} {name!r} is not registered. Add a [[{kind}]].")
    return row


def _manager(model: type[_Thing]) -> models.Manager[_Thing]:
    return model._default_manager  # noqa: SLF001  (Django's documented manager)


def _moment(place: str, value: object) -> datetime:
    """Return a TOML date or time as a datetime; without a zone it is UTC."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise InvalidDocument(f"{place}: since = {value!r} is not a date.")
