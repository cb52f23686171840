"""The centre's registration file for the portal."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from simulator import site
from simulator.faults import Kind
from simulator.plan import Plan
from simulator.servers import polls
from simulator.servers.polls import What

_KNOWN_SINCE = datetime(2016, 1, 1, tzinfo=UTC)


def text(plan: Plan) -> str:
    """Return the TOML that registers the clusters, their NIDs, the filesystem and its servers."""
    last_node = plan.node_count + site.SERVICE_NODE_COUNT - 1
    parts = [
        _table(
            "cluster",
            name=site.CLUSTER,
            time_zone="America/New_York",
            batch="pbs",
            simulated=True,
            nodes=f"nid[00000-{last_node:05d}]",
            exec_hosts_are_compute_nodes=False,
        ),
        '[cluster.nid_rule]\nnetwork = "gni"\nnode = "nid{number:05d}"\n',
        *(_table("cluster.nid", nid=nid, node=host) for nid, host in site.HOST_OF_NID.items()),
        _table(
            "cluster",
            name=site.ANALYSIS_CLUSTER,
            time_zone="America/New_York",
            batch="slurm",
            simulated=True,
            nodes=f"{site.ANALYSIS_CLUSTER}[1-{site.ANALYSIS_NODE_COUNT}]",
            cores_per_node=site.CORES_PER_NODE,
        ),
        *(
            _table("cluster.nid", nid=nid, node=node)
            for nid, node in site.ANALYSIS_NODE_OF_NID.items()
        ),
        filesystem(site.FILESYSTEM, (site.CLUSTER, site.ANALYSIS_CLUSTER)),
        filesystem(site.NFS_FILESYSTEM, (site.CLUSTER,)),
        server(site.NFS_SERVER, filesystem=site.NFS_FILESYSTEM, kind="nfs"),
    ]
    servers = {site.MDS: ("mds", (site.MDT,))} | {
        oss: ("oss", osts) for oss, osts in site.OSTS_OF_OSS.items()
    }
    for host, (kind, targets) in servers.items():
        kept_s = polls.kept_s(plan, What.MDT if kind == "mds" else What.OSTS)
        parts.append(server(host, kind=kind))
        parts += [_version(version, since) for version, since in _versions(host, plan)]
        parts += [
            target(name, filesystem=site.FILESYSTEM, server=host, kept_s=kept_s) for name in targets
        ]
    return "\n".join(parts)


def cluster(name: str, node_count: int, host_of_nid: Mapping[str, str]) -> Iterator[str]:
    """Yield the TOML of a cluster under Slurm: its nodes by a rule, hosts by name."""
    yield _table(
        "cluster",
        name=name,
        time_zone="America/New_York",
        batch="slurm",
        simulated=True,
        nodes=f"{name}[1-{node_count}]",
    )
    yield f'[cluster.nid_rule]\nnetwork = "gni"\nnode = "{name}{{number}}"\n'
    for nid, host in host_of_nid.items():
        yield _table("cluster.nid", nid=nid, node=host)


def filesystem(
    name: str, clusters: Iterable[str], job_id_pattern: str = site.JOB_ID_PATTERN
) -> str:
    """Return the TOML that registers a filesystem."""
    mounted = ", ".join(f'"{cluster}"' for cluster in clusters)
    return (
        f'[[filesystem]]\nname = "{name}"\nclusters = [{mounted}]\n'
        f"job_id_pattern = '{job_id_pattern}'\nsimulated = true\n"
    )


def user(name: str, uid: int) -> str:
    """Return the TOML that registers a user with the id in requests."""
    return _table("user", name=name, uid=uid)


def server(
    name: str,
    *,
    filesystem: str = site.FILESYSTEM,
    kind: str = "mds",
    version: str = "",
    capacity_per_s: int | None = None,
) -> str:
    """Return the TOML that registers one more server, of one version all the time."""
    versions = _version(version, _KNOWN_SINCE) if version else ""
    capacity = {"capacity_per_s": capacity_per_s} if capacity_per_s else {}
    return _table("server", name=name, filesystem=filesystem, kind=kind, **capacity) + versions


def target(name: str, *, filesystem: str, server: str, kept_s: int) -> str:
    """Return the TOML that registers a target whose idle entries are kept so long."""
    return _table(
        "target", name=name, filesystem=filesystem, server=server, job_cleanup_interval=kept_s
    )


def source(name: str, format_name: str, server: str) -> str:
    """Return the TOML that registers a source of an agent."""
    return _table("source", name=name, format=format_name, server=server)


def _versions(server: str, plan: Plan) -> list[tuple[str, datetime]]:
    upgrades = plan.faults.matching(Kind.UPGRADE, server)
    return [
        (site.LUSTRE_VERSION, _KNOWN_SINCE),
        *((fault.version, datetime.fromtimestamp(fault.start, UTC)) for fault in upgrades),
    ]


def _version(version: str, since: datetime) -> str:
    return f'[[server.version]]\nversion = "{version}"\nsince = {since:%Y-%m-%dT%H:%M:%SZ}\n'


def _table(title: str, /, **values: str | bool | int) -> str:
    lines = [f"[[{title}]]"]
    for key, value in values.items():
        # Numbers and truth are written in TOML as they are here, but for the capital letter.
        toml = f'"{value}"' if isinstance(value, str) else str(value).lower()
        lines.append(f"{key} = {toml}")
    return "\n".join(lines) + "\n"
