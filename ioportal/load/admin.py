"""Baselines on the registration pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from collectors.lustre import opcodes
from ioportal.load.models import Baseline, PinnedBaseline
from ioportal.site.admin import StaffAdmin
from ioportal.site.models import Server
from ioportal.telemetry.models import BaselinePeriod

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest


class PeriodFilter(admin.SimpleListFilter):
    """Filter: each server's latest period, or all periods."""

    title = "period"
    parameter_name = "periods"

    def lookups(
        self, _request: HttpRequest, _model_admin: admin.ModelAdmin[Baseline]
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        return [("all", "all periods")]

    def queryset(self, _request: HttpRequest, baselines: QuerySet[Baseline]) -> QuerySet[Baseline]:
        """Apply the filter."""
        if self.value() == "all":
            return baselines
        latest = BaselinePeriod.objects.order_by("server_id", "-end").distinct("server_id")
        return baselines.filter(period__in=latest.values("pk"))


class _OpcodeAdmin(StaffAdmin):
    """Rows with an opcode."""

    @admin.display(description="RPC", ordering="opcode")
    def rpc(self, row: Baseline | PinnedBaseline) -> str:
        """Name the opcode."""
        return opcodes.name_of(row.opcode)


@admin.register(Baseline)
class BaselineAdmin(_OpcodeAdmin):
    """Usual RPC times of a server at low load, computed daily; may be pinned."""

    list_display = ("server", "service", "rpc", "baseline_us", "windows", "since", "until")
    list_filter = (PeriodFilter, "service")
    list_select_related = ("period", "service")
    list_display_links = None
    actions = ("pin",)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Forbid adding: baselines are computed."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Forbid changing: baselines are computed."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Baseline]:
        """Add the servers' names: periods hold only their keys."""
        servers = Server.objects.filter(pk=OuterRef("period__server_id"))
        rows: QuerySet[Baseline] = super().get_queryset(request)
        return rows.annotate(server_name=Subquery(servers.values("name")))

    @admin.display(ordering="server_name")
    def server(self, baseline: Any) -> str:
        """Name the server."""
        return str(baseline.server_name)

    @admin.display(ordering="period__start")
    def since(self, baseline: Baseline) -> datetime:
        """Return the start of the period."""
        return baseline.period.start

    @admin.display(ordering="period__end")
    def until(self, baseline: Baseline) -> datetime:
        """Return the end of the period."""
        return baseline.period.end

    @admin.action(description="Pin as baseline from now on", permissions=["view"])
    def pin(self, request: HttpRequest, selected: QuerySet[Baseline]) -> None:
        """Pin computed baselines; each replaces the pinned one, if any."""
        now = timezone.now()
        for baseline in selected.select_related("period"):
            key = {
                "server_id": baseline.period.server_id,
                "service": baseline.service,
                "opcode": baseline.opcode,
            }
            PinnedBaseline.objects.filter(**key, until=None).update(until=now)
            PinnedBaseline.objects.create(
                **key,
                baseline_us=baseline.baseline_us,
                since=now,
                why=f"computed at {baseline.period.end:%Y-%m-%d %H:%M}Z",
                pinned_by=request.user.get_username(),
            )


@admin.register(PinnedBaseline)
class PinnedBaselineAdmin(_OpcodeAdmin):
    """Pinned baselines with author and time; setting *until* unpins."""

    list_display = (
        "server", "service", "rpc", "baseline_us", "since", "until", "pinned_by", "pinned_at", "why"
    )  # fmt: skip
    list_filter = (("until", admin.EmptyFieldListFilter), "server")
    list_select_related = ("server", "service")
    readonly_fields = ("pinned_by", "pinned_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Make everything but *until* and *why* read-only once pinned."""
        always = super().get_readonly_fields(request, obj)
        once_pinned = ("server", "service", "opcode", "baseline_us", "since") if obj else ()
        return (*always, *once_pinned)

    def save_model(
        self,
        request: HttpRequest,
        obj: PinnedBaseline,
        form: ModelForm,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Record the author."""
        if not change:
            obj.pinned_by = request.user.get_username()
        super().save_model(request, obj, form, change)
