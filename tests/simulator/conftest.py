import json

import pytest

from simulator import demo
from simulator.plan import full_days


@pytest.fixture(scope="session")
def centre(shared_folder):
    """Return the folder with the files of the three detailed days."""
    return shared_folder("centre", lambda out: demo.write(full_days(), out))


@pytest.fixture(scope="session")
def truth(centre):
    return json.loads((centre / "truth.json").read_text())


@pytest.fixture(scope="session")
def fault(truth):
    """Return the only fault of a kind in the three days."""

    def only(kind):
        (match,) = (fault for fault in truth["faults"]["faults"] if fault["kind"] == kind)
        return match

    return only
