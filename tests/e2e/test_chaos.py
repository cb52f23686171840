"""A short run of `make chaos`."""

import shutil
import tempfile
from pathlib import Path

import pytest

from chaos.installation import Installation
from chaos.run import Run
from scripts.services.choice import choose

pytestmark = pytest.mark.long


@pytest.fixture
def site():
    if choose().servers is None:
        pytest.skip("the database is external, and this test kills it")
    folder = Path(tempfile.mkdtemp(prefix="ioportal-chaos-"))  # a short path, for sockets
    site = Installation(folder)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        shutil.rmtree(folder)


def test_killed_processes_lose_and_duplicate_no_operation(site):
    run = Run(site)

    assert [outcome.wrong for outcome in run.seeds([1])] == [[]]
    assert run.conclude() == []
