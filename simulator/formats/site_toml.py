"""The centre's registration file for the portal."""

from simulator import site


def text() -> str:
    """Return the TOML that registers the cluster, its NIDs, the filesystem and its servers."""
    parts = [
        _table(
            "cluster",
            name=site.CLUSTER,
            time_zone="America/New_York",
            batch="pbs",
            simulated=True,
            nodes=f"nid[00000-{site.NODE_COUNT - 1:05d}]",
            exec_hosts_are_compute_nodes=False,
        ),
        '[cluster.nid_rule]\nnetwork = "gni"\nnode = "nid{number:05d}"\n',
    ]
    parts += [_table("cluster.nid", nid=nid, node=host) for nid, host in site.HOST_OF_NID.items()]
    parts.append(
        f'[[filesystem]]\nname = "{site.FILESYSTEM}"\nclusters = ["{site.CLUSTER}"]\n'
        f"job_id_pattern = '{site.JOB_ID_PATTERN}'\nsimulated = true\n"
    )
    servers = {site.MDS: ("mds", (site.MDT,))} | {
        oss: ("oss", osts) for oss, osts in site.OSTS_OF_OSS.items()
    }
    for server, (kind, targets) in servers.items():
        parts.append(_table("server", name=server, filesystem=site.FILESYSTEM, kind=kind))
        parts.append(f'[[server.version]]\nversion = "{site.LUSTRE_VERSION}"\nsince = 2017-01-01\n')
        parts += [
            _table("target", name=target, filesystem=site.FILESYSTEM, server=server)
            for target in targets
        ]
    return "\n".join(parts)


def _table(title: str, /, **values: str | bool) -> str:
    lines = [f"[[{title}]]"]
    for key, value in values.items():
        shown = str(value).lower() if isinstance(value, bool) else f'"{value}"'
        lines.append(f"{key} = {shown}")
    return "\n".join(lines) + "\n"
