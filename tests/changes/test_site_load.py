"""The nodes in use at a site, as far as a user may know them."""

from datetime import timedelta

import pytest

from ioportal.jobs.site_load import nodes_in_use
from tests.web.conftest import NOON


@pytest.mark.parametrize(("nodes", "is_known"), [(2, True), (0, False)])
def test_owners_without_node_hours_hide_nobody(charlie, new_jobs, nodes, is_known):
    owners = (("alice", 2), ("bob", 2), ("dave", nodes))
    jobs = [(0, {}, {"owner": owner, "node_count": count}) for owner, count in owners * 5]
    new_jobs(jobs)

    known = nodes_in_use(charlie, NOON, NOON + timedelta(hours=1))

    assert (known is not None) == is_known
