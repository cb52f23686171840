import io
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import settings

from collectors import tables
from collectors.parsed import Account, Parsed
from collectors.source import Source

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "tests" / "fixtures"


@pytest.fixture(scope="session")
def berlin():
    return ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="session")
def new_york():
    return ZoneInfo("America/New_York")


@pytest.fixture(scope="session")
def fixture_text():
    """The bytes of one of our own fixtures, by format and name."""

    def read(form, name):
        return (FIXTURES / form / name).read_bytes()

    return read


@pytest.fixture(scope="session")
def sample():
    """The path of a real file, by format and name."""

    def find(form, name):
        path = REPOSITORY.parent / "shared" / "samples" / form / name
        if not path.exists():
            pytest.skip(f"shared/samples/{form}/{name} is not beside the repository")
        return path

    return find


@pytest.fixture(scope="session")
def source():
    """A source of some lines, or of bytes as they are."""

    def of(*lines, chunk_bytes=1 << 20):
        [text] = lines if lines and isinstance(lines[0], bytes) else ["\n".join(lines).encode()]
        return Source(io.BytesIO(text), "a text", chunk_bytes)

    return of


@pytest.fixture(scope="session")
def whole():
    """All parts of a parsed text in one."""

    def join(parts):
        parts = list(parts)
        return Parsed(
            pl.concat([part.table for part in parts]) if parts else pl.DataFrame(),
            pl.concat([tables.REJECTS.empty(), *(part.rejects for part in parts)]),
            sum((part.account for part in parts), Account()),
        )

    return join
