"""A chart of a page with its table and export."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

from ioportal.load.step_charts import ROWS_SHOWN
from ioportal.web.common.tables import Row, Table

if TYPE_CHECKING:
    from typing import Self

    from ioportal.core.charts.time_axis import Figure


@dataclass(frozen=True)
class Part(Table[Row]):
    """A table with its chart; `has_figure` is false if nothing can be drawn."""

    name: str
    figure: Figure
    _: KW_ONLY
    has_figure: bool = True
    most: int = ROWS_SHOWN

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.rows and self.has_figure)

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-{self.name}"

    def at(self, exports_url: str) -> Self:
        """Return the chart with the address of its exports, without the format."""
        return replace(self, exports_url=exports_url)
