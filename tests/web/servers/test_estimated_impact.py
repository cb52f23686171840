"""Impact on a server without traces, from its statistics and job_stats."""

import pytest

from tests import loading, untraced
from tests.web.reading import words_of


@pytest.fixture(scope="module")
def stream(module_site, module_logs):
    """Ingest all reads of an untraced server and run all stages."""
    untraced.ingest(module_logs)
    loading.evaluate()


def test_the_server_page_lists_who_slowed_down_others(as_staff, stream):
    page = words_of(as_staff.get("/servers/mds1/"))

    table = page.partition("Share of work %")[2].split()
    assert table[:2] + table[5:7] == ["alice", "user", "dave", "user"]
    assert table[3] == table[8] == "estimated"
