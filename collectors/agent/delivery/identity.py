"""The identity of an agent: the portal tells two agents on one source apart by it."""

import uuid
from pathlib import Path

from collectors.agent import durable

_FILE = "instance"


def instance(state: Path) -> str:
    """Return the identity of the agent with this state folder; the first start creates it."""
    path = state / _FILE
    try:
        return str(uuid.UUID(path.read_text("ascii").strip()))
    except (FileNotFoundError, ValueError):  # missing or damaged
        created = str(uuid.uuid4())
        durable.write(path, created.encode())
        return created
