"""Nobody is accused by a job id alone that another user's job on the same node can send."""

import pytest

from ioportal.findings.models import Case, Flag
from tests import storms
from tests.logs import Run, sacct

WITH_UIDS = """
[[filesystem]]
name = "lake"
clusters = ["anvil", "birch"]
job_id_pattern = '(?P<batch_id>[0-9]+):(?P<uid>[0-9]+)'
[[user]]
name = "alice"
uid = 1001
"""
OTHERS = (Run("78", nodes="n2", user="bob"), Run("79", nodes="n5", user="carol"))


@pytest.mark.parametrize(
    ("nodes", "user", "job_id", "is_accused"),
    [
        ("n[3-4]", "mallory", "77", False),
        ("n[3-4]", "mallory", "77:1001", True),
        ("n[3-4]", "alice", "77", True),
        ("n4", "mallory", "77", True),
        ("n6", "mallory", "77", True),
    ],
    ids=["shared nodes", "with user id", "own nodes", "one shared node", "nodes of others"],
)
def test_a_storm_from_nodes_of_several_owners_accuses_no_job_by_its_id(
    site, register, logs, ingest, evaluate, nodes, user, job_id, is_accused
):
    if ":" in job_id:
        register(WITH_UIDS)
    runs = (Run("77", nodes="n[3-4]"), Run("80", nodes=nodes, user=user), *OTHERS)
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    trace = [line.replace(":77 ", f":{job_id} ") for _, line in storms.overload()]
    ingest("rpctrace", logs("t", *trace), server="mds1")
    storms.pin_baseline()

    accused = {key for key, flag in evaluate().items() if flag.severity > Flag.Severity.NOTICE}

    assert accused == ({("impact", "77")} if is_accused else set())
    assert Case.objects.to_triage().exists() == is_accused
