import pytest

from simulator import demo


@pytest.fixture(scope="session")
def centre(tmp_path_factory):
    """Return the folder that the demo's files are in."""
    out = tmp_path_factory.mktemp("centre")
    demo.write(1, out)
    return out
