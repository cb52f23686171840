"""What is known of sources, for their admin: in a file for `status`, and as metrics."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Health:
    """What became of a source since the agent started; its threads write it, anybody reads it."""

    read_at: datetime | None = None  # when all that there was had been read
    delivered_at: datetime | None = None
    behind_bytes: int = 0  # not read at the time
    lines: int = 0
    rejected: int = 0
    rows: int = 0
    delivered: int = 0  # batches
    refused: int = 0
    troubles: dict[str, str] = field(default_factory=dict)  # by what is in trouble, the reason
