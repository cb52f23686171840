"""A chart of a page with its table and export."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ioportal.load.step_charts import ROWS_SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure


@dataclass(frozen=True)
class Part:
    """A chart with its table and export.

    The export has `header` and `rows`, the page `labels` and `table`.
    """

    name: str
    title: str
    about: str
    figure: Figure
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    labels: Sequence[str]
    table: Sequence[tuple[str, Sequence[str]]]
    is_empty: bool = False
    exports_url: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-{self.name}"

    @property
    def table_shown(self) -> Sequence[tuple[str, Sequence[str]]]:
        """The first rows of the table."""
        return self.table[:ROWS_SHOWN]

    @property
    def more_rows(self) -> int:
        """The number of rows that only the exports have."""
        return max(0, len(self.table) - ROWS_SHOWN)

    def at(self, exports_url: str) -> Part:
        """Return the chart with the URL of its export, without the format."""
        return replace(self, exports_url=exports_url)
