"""The centre: its machines, its hosts, its filesystem and its people."""

from dataclasses import dataclass

CLUSTER = "titan"
BATCH_SERVER = "titan"  # the server part of a PBS job id
NODE_COUNT = 18_688  # compute nodes
SERVICE_NODE_COUNT = 512  # of the same network: routers, batch hosts
CORES_PER_NODE = 16

ANALYSIS_CLUSTER = "rhea"  # its nodes are shared
ANALYSIS_NODE_COUNT = 840

FILESYSTEM = "atlas2"
MDT = "atlas2-MDT0000"
MDS = "atlas2-mds1"
OSTS_OF_OSS = {
    "atlas2-oss1": ("atlas2-OST0000", "atlas2-OST0001"),
    "atlas2-oss2": ("atlas2-OST0002", "atlas2-OST0003"),
}
OSTS = tuple(ost for osts in OSTS_OF_OSS.values() for ost in osts)
LUSTRE_VERSION = "2.8.0"
NFS_SERVER = "titan-nfs1"
NFS_FILESYSTEM = "nfs-apps"  # its exports
# PBS_JOBID or SLURM_JOB_ID in clients' requests; cut at 31 characters by Lustre.
JOB_ID_PATTERN = r"(?P<batch_id>\d+)(\.\S*)?"

BATCH_HOSTS = ("titan-batch1", "titan-batch2", "titan-batch3", "titan-batch4")
# Service nodes that run aprun, one per batch host.
BATCH_CNAMES = ("c0-0c0s1n1", "c4-1c0s0n1", "c9-3c1s7n2", "c18-6c2s0n1")

# Lustre clients outside the Cray network: log-in nodes and the host of a scanning daemon.
HOST_OF_NID = {
    "10.36.226.10@o2ib": "titan-ext1",
    "10.36.226.11@o2ib": "titan-ext2",
    "10.36.226.12@o2ib": "titan-ext3",
    "10.36.226.13@o2ib": "titan-ext4",
    "10.36.226.40@o2ib": "titan-policy1",
}
POLICY_NID = "10.36.226.40@o2ib"
LOGIN_NIDS = tuple(nid for nid in HOST_OF_NID if nid != POLICY_NID)
_HOSTS_PER_SUBNET = 250
ANALYSIS_NODE_OF_NID = {
    f"10.36.{240 + n // _HOSTS_PER_SUBNET}.{n % _HOSTS_PER_SUBNET + 1}@o2ib": f"rhea{n + 1}"
    for n in range(ANALYSIS_NODE_COUNT)
}
# A client is an index into this list; the analysis cluster's clients are last.
NIDS = (*(f"{node}@gni" for node in range(NODE_COUNT)), *HOST_OF_NID, *ANALYSIS_NODE_OF_NID)
FIRST_ANALYSIS_CLIENT = NODE_COUNT + len(HOST_OF_NID)


def client(nid: str) -> int:
    """Return the index in `NIDS` of a host outside the Cray network; a node is its own index."""
    return NODE_COUNT + list(HOST_OF_NID).index(nid)


@dataclass(frozen=True)
class User:
    """A user who submits jobs, always for the same project."""

    name: str
    uid: int
    project: str


PANDA = User("hepprod", 15_311, "HEP110")
