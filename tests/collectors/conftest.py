import io
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from collectors import tables
from collectors.parsed import Account, Parsed
from collectors.source import Source

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
    """Return the content of a fixture file, by format and name."""

    def read(form, name):
        return (FIXTURES / form / name).read_bytes()

    return read


@pytest.fixture(scope="session")
def sample():
    """Return the path of a sample file, by format and name."""

    def find(form, name):
        path = REPOSITORY.parent / "shared" / "samples" / form / name
        if not path.exists():
            pytest.skip(f"shared/samples/{form}/{name} is not present")
        return path

    return find


@pytest.fixture(scope="session")
def source():
    """Return a source of lines, or of bytes."""

    def create(*lines, chunk_bytes=1 << 20):
        [text] = lines if lines and isinstance(lines[0], bytes) else ["\n".join(lines).encode()]
        return Source(io.BytesIO(text), "a text", chunk_bytes)

    return create


@pytest.fixture(scope="session")
def whole():
    """Join the parts of a parsed source."""

    def join(parts):
        parts = list(parts)
        return Parsed(
            pl.concat([part.table for part in parts]) if parts else pl.DataFrame(),
            pl.concat([tables.REJECTS.empty(), *(part.rejects for part in parts)]),
            sum((part.account for part in parts), Account()),
        )

    return join
