"""The what-if page: loads of runs, jobs and populations with a latency and a bandwidth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from ioportal.core.formatting import signed, significant
from ioportal.core.units import Unit
from ioportal.experiments.analysis.latency_model import (
    MIN_RUNS,
    Fit,
    NotIdentifiable,
    Prediction,
    claim,
    fit,
    predict,
)
from ioportal.experiments.charts import bars
from ioportal.experiments.pages.loads import CLAIMED, MIB, OPERATIONS, Numbers, SelectedLoads
from ioportal.web.common import exports
from ioportal.web.common.parts import Part
from ioportal.web.common.requests import other_parameters
from ioportal.web.common.tables import Column
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpResponseBase, QueryDict

    from ioportal.web.common.requests import UserRequest


_MEBIBYTE = 2**20
_MS = 1_000
_DRAWN = 30


@dataclass(frozen=True)
class Number:
    """A number of the form: parameter, label, unit, default, and range of its slider."""

    name: str
    label: str
    unit: str
    default: float
    least: float  # of the slider, which is logarithmic
    greatest: float


LATENCY = Number("latency_ms", "Latency per operation", "ms", 5, 0.01, 1_000)
BANDWIDTH = Number("bandwidth_mib_s", "Bandwidth", "MiB/s", 12, 0.1, 10_000)


class ModelPage:
    """Loads named in a URL, and the model's parameters."""

    def __init__(self, user: User, query: QueryDict) -> None:
        self.query = query
        self.numbers = Numbers(query)
        self.selected = SelectedLoads(user, query, self.numbers)
        self.loads = self.selected.loads
        self.claimed_s = self.numbers.read(CLAIMED)
        self.fit: Fit | None = None
        self.fit_refusal = ""  # why the runs do not determine latency and bandwidth
        try:
            self.fit = fit(self.loads)
        except NotIdentifiable as error:
            self.fit_refusal = str(error)

    @property
    def errors(self) -> list[str]:
        """Invalid parameters, which are ignored."""
        return [*self.selected.errors, *self.numbers.errors]

    @property
    def has_measured(self) -> bool:
        """Whether enough loads have a measured time for a fit to be expected."""
        return sum(load.measured_s is not None for load in self.loads) >= MIN_RUNS

    @cached_property
    def _entered(self) -> tuple[float | None, float | None]:
        return (
            self.numbers.read(LATENCY.name),
            self.numbers.read(BANDWIDTH.name, is_positive=True),
        )

    @property
    def is_fitted(self) -> bool:
        """Whether the predictions use the fitted values: the URL has no others."""
        return self.fit is not None and self._entered == (None, None)

    @property
    def parameters(self) -> tuple[float, float]:
        """Latency in s and bandwidth in bytes/s, as fitted or entered, or the defaults."""
        if self.fit and self.is_fitted:
            return self.fit.latency_s.value, self.fit.bandwidth_bytes_per_s.value
        latency_ms, bandwidth = self._entered
        return (
            (LATENCY.default if latency_ms is None else latency_ms) / _MS,
            (bandwidth or BANDWIDTH.default) * _MEBIBYTE,
        )

    @property
    def sliders(self) -> list[tuple[Number, str]]:
        """The parameters of the form with their values."""
        latency_s, bandwidth = self.parameters
        return [
            (LATENCY, f"{_MS * latency_s:.6g}"),
            (BANDWIDTH, f"{bandwidth / _MEBIBYTE:.6g}"),
        ]

    @cached_property
    def predictions(self) -> list[Prediction]:
        """The predicted times of all loads."""
        return [predict(load, *self.parameters) for load in self.loads]

    @property
    def claims(self) -> list[str]:
        """Whether a claimed time follows from each load."""
        if self.claimed_s is None:
            return []
        return [claim(each, self.claimed_s) for each in self.predictions[:_DRAWN]]

    @property
    def parts(self) -> list[Part[Any]]:
        """The chart of terms."""
        return [
            Part(
                "Predicted time in storage",
                _COLUMNS,
                self.predictions,
                "terms",
                bars.terms(self.predictions[:_DRAWN]),
                about="Operations × latency + bytes / bandwidth. Diamonds: measured time in reads.",  # noqa: RUF001
                most=_DRAWN,
                exports_url=self.export_url,
            )
        ]

    @property
    def export_url(self) -> str:
        """The address of the export, without the format."""
        query = self.query.copy()
        query.pop("format", None)
        return f"{reverse('model')}?{query.urlencode()}"

    @property
    def fit_url(self) -> str:
        """The address with the fitted values: without a latency and a bandwidth."""
        query = self.query.copy()
        for name in (LATENCY.name, BANDWIDTH.name):
            query.pop(name, None)
        return f"?{query.urlencode()}"

    @property
    def fields(self) -> dict[str, str]:
        """Values of the fields for entered operations and size, and a claimed time."""
        return {name: self.query.get(name, "")[:32] for name in (OPERATIONS, MIB, CLAIMED)}

    @property
    def other_parameters(self) -> list[tuple[str, str]]:
        """Parameters of the URL that the form keeps: the loads."""
        own = {LATENCY.name, BANDWIDTH.name, OPERATIONS, MIB, CLAIMED}
        return other_parameters(self.query, own)

    @property
    def about(self) -> dict[str, Any]:
        """Members of the JSON export: parameters, and the fit with its intervals."""
        fitted = self.fit
        return {
            **dict(zip(("latency_s", "bandwidth_bytes_per_s"), self.parameters, strict=True)),
            "simulated": self.selected.is_simulated,
            "fit": fitted
            and {
                "runs": fitted.runs,
                "latency_s": vars(fitted.latency_s),
                "bandwidth_bytes_per_s": {
                    name: value if math.isfinite(value) else None
                    for name, value in vars(fitted.bandwidth_bytes_per_s).items()
                },
                "residual_s": fitted.residual_s,
            },
            "fit_refusal": self.fit_refusal,
            "claims": self.claims,
            "errors": self.errors,
            "notes": self.selected.notes,
        }

    @property
    def fit_text(self) -> str:
        """The fit in a sentence."""
        fitted = self.fit
        if fitted is None:
            return self.fit_refusal
        latency, bandwidth = fitted.latency_s, fitted.bandwidth_bytes_per_s
        high = (
            "no upper bound"
            if math.isinf(bandwidth.high)
            else f"{significant(bandwidth.high / _MEBIBYTE)}"
        )
        return (
            f"Fitted to {fitted.runs:,} runs: latency {_MS * latency.value:.4g} ms (95 % interval "
            f"{_MS * latency.low:.4g} to {_MS * latency.high:.4g}), bandwidth "
            f"{significant(bandwidth.value / _MEBIBYTE)} MiB/s "
            f"({significant(bandwidth.low / _MEBIBYTE)} to {high}). Standard deviation of the "
            f"residuals: {significant(fitted.residual_s)} s."
        )


_COLUMNS: tuple[Column[Prediction], ...] = (
    Column("load", "Load", "load__name"),
    Column("operations", "Operations", "load__operations", "", form=show.whole),
    Column("bytes", "Bytes", "load__bytes", "MiB", form=lambda size: f"{size / _MEBIBYTE:,.3f}"),
    Column("latency_term_s", "Latency", "latency_s", "s"),
    Column("transfer_term_s", "Transfer", "transfer_s", "s"),
    Column("predicted_s", "Predicted", "total_s", "s"),
    Column("latency_share", "Share of latency", unit=Unit.SHARE),
    Column("", "Half the latency saves", lambda each: each.latency_s / 2, "s"),
    Column("", "Double bandwidth saves", lambda each: each.transfer_s / 2, "s"),
    Column("measured_s", "Measured", "load__measured_s", "s"),
    Column("residual_s", "Residual", unit="s", form=lambda each: signed(each, ",.2f")),
)


@require_safe
@exports.accept("csv", "json")
def model(request: UserRequest) -> HttpResponseBase:
    """Show or export predicted times of loads."""
    page = ModelPage(request.user, request.GET)
    if exports.requested_format(request):
        return exports.response(request, "model", page.about, *page.parts[0].export)
    return render(request, "model/page.html", {"section": "model", "page": page})
