import json

import pytest

from simulator import demo


@pytest.fixture(scope="session")
def centre(tmp_path_factory):
    """Return the folder that the demo's files are in."""
    out = tmp_path_factory.mktemp("centre")
    demo.write(1, out)
    return out


@pytest.fixture(scope="session")
def truth(centre):
    return json.loads((centre / "truth.json").read_text())
