"""Baselines on the registration pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from collectors.lustre import opcodes
from ioportal.activity.models import Baseline, PinnedBaseline
from ioportal.site.admin import StaffAdmin
from ioportal.site.models import Server
from ioportal.telemetry.models import BaselinePeriod

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest


class NewestPeriods(admin.SimpleListFilter):
    """What is usual now, or what was."""

    title = "period"
    parameter_name = "periods"

    def lookups(
        self, _request: HttpRequest, _model_admin: admin.ModelAdmin[Baseline]
    ) -> list[tuple[str, str]]:
        """Offer those of the past besides."""
        return [("all", "all periods")]

    def queryset(self, _request: HttpRequest, baselines: QuerySet[Baseline]) -> QuerySet[Baseline]:
        """Keep those of each server's newest period."""
        if self.value() == "all":
            return baselines
        newest = BaselinePeriod.objects.order_by("server_id", "-end").distinct("server_id")
        return baselines.filter(period__in=newest.values("pk"))


class _OfKind(StaffAdmin):
    """Rows that are each of one kind of RPC."""

    @admin.display(description="RPC", ordering="opcode")
    def rpc(self, row: Baseline | PinnedBaseline) -> str:
        """Name the opcode."""
        return opcodes.name_of(row.opcode)


@admin.register(Baseline)
class BaselineAdmin(_OfKind):
    """How long RPCs take where a server is calm, as reckoned daily; may be pinned."""

    list_display = ("server", "service", "rpc", "baseline_us", "windows", "since", "until")
    list_filter = (NewestPeriods, "service")
    list_select_related = ("period", "service")
    list_display_links = None
    actions = ("pin",)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """They are reckoned."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Likewise."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Baseline]:
        """Take the servers' names along: periods only have their keys."""
        servers = Server.objects.filter(pk=OuterRef("period__server_id"))
        rows: QuerySet[Baseline] = super().get_queryset(request)
        return rows.annotate(of_server=Subquery(servers.values("name")))

    @admin.display(ordering="of_server")
    def server(self, baseline: Any) -> str:
        """Name the server."""
        return str(baseline.of_server)

    @admin.display(ordering="period__start")
    def since(self, baseline: Baseline) -> datetime:
        """When its period begins."""
        return baseline.period.start

    @admin.display(ordering="period__end")
    def until(self, baseline: Baseline) -> datetime:
        """When its period ends."""
        return baseline.period.end

    @admin.action(description="Pin: keep as usual from now on", permissions=["view"])
    def pin(self, request: HttpRequest, chosen: QuerySet[Baseline]) -> None:
        """Pin what was reckoned, in place of what is pinned."""
        now = timezone.now()
        for one in chosen.select_related("period"):
            kind = {"server_id": one.period.server_id, "service": one.service, "opcode": one.opcode}
            PinnedBaseline.objects.filter(**kind, until=None).update(until=now)
            PinnedBaseline.objects.create(
                **kind,
                baseline_us=one.baseline_us,
                since=now,
                why=f"reckoned by {one.period.end:%Y-%m-%d %H:%M}Z",
                pinned_by=request.user.get_username(),
            )


@admin.register(PinnedBaseline)
class PinnedBaselineAdmin(_OfKind):
    """What somebody decided to be usual, with who and when; to unpin, say until when it holds."""

    list_display = (
        "server", "service", "rpc", "baseline_us", "since", "until", "pinned_by", "pinned_at", "why"
    )  # fmt: skip
    list_filter = (("until", admin.EmptyFieldListFilter), "server")
    list_select_related = ("server", "service")
    readonly_fields = ("pinned_by", "pinned_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What was decided stays; it may end."""
        fixed = super().get_readonly_fields(request, obj)
        decided = ("server", "service", "opcode", "baseline_us", "since") if obj else ()
        return (*fixed, *decided)

    def save_model(
        self,
        request: HttpRequest,
        obj: PinnedBaseline,
        form: ModelForm,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Remember who it was."""
        if not change:
            obj.pinned_by = request.user.get_username()
        super().save_model(request, obj, form, change)
