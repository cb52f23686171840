"""A short run of what `make chaos` does for longer."""

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
        pytest.skip("somebody else runs the database, which is to be killed")
    folder = Path(tempfile.mkdtemp(prefix="ioportal-chaos-"))  # short: it holds sockets
    site = Installation(folder)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        shutil.rmtree(folder)


def test_whatever_is_killed_every_operation_is_counted_once(site):
    run = Run(site)

    assert [outcome.wrong for outcome in run.seeds([1])] == [[]]
    assert run.conclude() == []
