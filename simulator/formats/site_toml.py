"""The centre's registration file for the portal."""

from datetime import UTC, datetime

from simulator import polls, site
from simulator.faults import Kind
from simulator.plan import Plan
from simulator.polls import What

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
        ),
        *(
            _table("cluster.nid", nid=nid, node=node)
            for nid, node in site.ANALYSIS_NODE_OF_NID.items()
        ),
        _filesystem(),
    ]
    servers = {site.MDS: ("mds", (site.MDT,))} | {
        oss: ("oss", osts) for oss, osts in site.OSTS_OF_OSS.items()
    }
    for server, (kind, targets) in servers.items():
        parts.append(_table("server", name=server, filesystem=site.FILESYSTEM, kind=kind))
        parts += [_version(version, since) for version, since in _versions(server, plan)]
        parts += [
            _table(
                "target",
                name=target,
                filesystem=site.FILESYSTEM,
                server=server,
                job_cleanup_interval=polls.kept_s(plan, What.MDT if kind == "mds" else What.OSTS),
            )
            for target in targets
        ]
    return "\n".join(parts)


def server(name: str) -> str:
    """Return the TOML that registers one more metadata server."""
    return _table("server", name=name, filesystem=site.FILESYSTEM, kind="mds")


def _filesystem() -> str:
    return (
        f'[[filesystem]]\nname = "{site.FILESYSTEM}"\n'
        f'clusters = ["{site.CLUSTER}", "{site.ANALYSIS_CLUSTER}"]\n'
        f"job_id_pattern = '{site.JOB_ID_PATTERN}'\nsimulated = true\n"
    )


def _versions(server: str, plan: Plan) -> list[tuple[str, datetime]]:
    upgrades = plan.faults.of(Kind.UPGRADE, server)
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
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
        lines.append(f"{key} = {shown}")
    return "\n".join(lines) + "\n"
