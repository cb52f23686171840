"""Registration of a site by its staff, on Django's own pages."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from collectors.formats import FORMATS
from ioportal.site.models import (
    Cluster,
    Filesystem,
    Nid,
    Node,
    Server,
    ServerVersion,
    Source,
    Target,
    UserAccount,
)
from ioportal.site.registration import apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model, QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

admin.site.site_header = "ioportal: registration of the site"
admin.site.site_title = "ioportal"
admin.site.index_title = "What this site consists of"


def is_staff(request: HttpRequest) -> bool:
    """Whether the user may see and change what the site consists of."""
    return bool(request.user.is_active and request.user.is_staff)


def _data(path: str) -> Callable[[Model], str]:
    """Return a column that marks what is simulated, by the way from a row to what says so."""

    @admin.display(description="data")
    def data(row: Model) -> str:
        try:
            return "simulated" if attrgetter(path)(row) else "real"
        except AttributeError:  # a NID of no node
            return ""

    return data


class StaffAdmin(admin.ModelAdmin):
    """Pages for staff."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """They are for staff, whatever else they may do."""
        return is_staff(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Likewise."""
        return is_staff(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Likewise."""
        return is_staff(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Likewise."""
        return is_staff(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """What data hangs on is not deleted by a click."""
        return False


class RegistrationAdmin(StaffAdmin):
    """What the site consists of; a change is applied to what was seen before."""

    def save_related(
        self,
        request: HttpRequest,
        form: ModelForm,
        formsets: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save, then apply."""
        super().save_related(request, form, formsets, change)
        apply(form.instance)


class RegistrationInline(admin.TabularInline):
    """Parts of what the site consists of, on the page of the whole."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Registration is for staff, whatever else they may do."""
        return is_staff(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Likewise."""
        return is_staff(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Likewise."""
        return is_staff(request)


@admin.register(Cluster)
class ClusterAdmin(RegistrationAdmin):
    """Compute systems and their NID rules."""

    list_display = ("name", "batch_system", "time_zone", "nid_rule", _data("simulated"))
    list_filter = ("batch_system", "simulated")
    search_fields = ("name",)
    fieldsets = (
        (None, {"fields": ("name", "batch_system", "time_zone", "simulated")}),
        (
            "Nodes",
            {
                "fields": (
                    "exec_hosts_are_compute_nodes",
                    "cores_per_node",
                    "nid_network",
                    "nid_node_format",
                ),
                "description": "How Lustre's NIDs name this cluster's nodes. Without a rule, "
                "give each NID its node under NIDs or with 'manage.py register'.",
            },
        ),
    )

    @admin.display(description="NID rule")
    def nid_rule(self, cluster: Cluster) -> str:
        """Show the rule in one line."""
        if not cluster.nid_network:
            return "none"
        return f"number@{cluster.nid_network} → {cluster.nid_node_format}"


@admin.register(Filesystem)
class FilesystemAdmin(RegistrationAdmin):
    """Lustre filesystems and what their job ids look like."""

    list_display = ("name", "job_id_pattern", _data("simulated"))
    filter_horizontal = ("clusters",)
    search_fields = ("name",)


class ServerVersionInline(RegistrationInline):
    """The versions that a server ran."""

    model = ServerVersion
    extra = 1
    ordering = ("since",)
    verbose_name = "Lustre version"
    verbose_name_plural = "Lustre versions: charts break where what a server counts changed"


class TargetInline(RegistrationInline):
    """The targets that a server serves."""

    model = Target
    extra = 1
    fields = ("name", "kind", "filesystem", "job_cleanup_interval")


@admin.register(Server)
class ServerAdmin(RegistrationAdmin):
    """MDS and OSS hosts."""

    list_display = ("name", "kind", "filesystem", _data("filesystem.simulated"))
    list_filter = ("kind", "filesystem")
    list_select_related = ("filesystem",)
    search_fields = ("name",)
    inlines = (ServerVersionInline, TargetInline)


@admin.register(Target)
class TargetAdmin(RegistrationAdmin):
    """MDTs and OSTs."""

    list_display = ("name", "kind", "filesystem", "server", _data("filesystem.simulated"))
    list_filter = ("kind", "filesystem")
    list_select_related = ("filesystem", "server")
    search_fields = ("name",)
    autocomplete_fields = ("server",)


class SourceForm(forms.ModelForm):
    """A source, with the formats to choose from."""

    format = forms.ChoiceField(choices=[(form.name, form.label) for form in FORMATS])


@admin.register(Source)
class SourceAdmin(RegistrationAdmin):
    """What agents send; each needs a token: 'manage.py token create'."""

    list_display = ("name", "format", "speaks_for", "poll_interval_s", "last_batch_at")
    list_filter = ("format",)
    list_select_related = ("cluster", "filesystem", "server")
    search_fields = ("name",)
    autocomplete_fields = ("server",)
    form = SourceForm

    @admin.display(description="speaks for")
    def speaks_for(self, source: Source) -> str:
        """Name the one thing."""
        return str(source.cluster or source.filesystem or source.server)


@admin.register(Node)
class NodeAdmin(RegistrationAdmin):
    """Compute and login nodes; accounting adds them as it names them."""

    list_display = ("name", "cluster", _data("cluster.simulated"))
    list_filter = ("cluster",)
    list_select_related = ("cluster",)
    search_fields = ("name",)


class UnregisteredFilter(admin.SimpleListFilter):
    """NIDs with or without a node."""

    title = "node"
    parameter_name = "registered"

    def lookups(
        self, _request: HttpRequest, _model_admin: admin.ModelAdmin[Nid]
    ) -> list[tuple[str, str]]:
        """Offer both kinds."""
        return [("no", "not registered"), ("yes", "registered")]

    def queryset(self, _request: HttpRequest, nids: QuerySet[Nid]) -> QuerySet[Nid]:
        """Keep the chosen kind."""
        return nids if self.value() is None else nids.filter(node__isnull=self.value() == "no")


@admin.register(Nid)
class NidAdmin(RegistrationAdmin):
    """Lustre network ids and the nodes that have them."""

    list_display = ("text", "node", "cluster", _data("node.cluster.simulated"))
    list_filter = (UnregisteredFilter, "node__cluster")
    list_select_related = ("node__cluster",)
    search_fields = ("text",)
    autocomplete_fields = ("node",)

    @admin.display(description="cluster")
    def cluster(self, nid: Nid) -> str:
        """Name the node's cluster."""
        return nid.node.cluster.name if nid.node else "not registered"


class ServiceFilter(admin.SimpleListFilter):
    """Accounts of persons, or of services."""

    title = "kind"
    parameter_name = "service"

    def lookups(
        self, _request: HttpRequest, _model_admin: admin.ModelAdmin[UserAccount]
    ) -> list[tuple[str, str]]:
        """Offer both kinds."""
        return [("no", "persons"), ("yes", "services")]

    def queryset(
        self, _request: HttpRequest, accounts: QuerySet[UserAccount]
    ) -> QuerySet[UserAccount]:
        """Keep the chosen kind."""
        if self.value() is None:
            return accounts
        return accounts.filter(team="") if self.value() == "no" else accounts.exclude(team="")


@admin.register(UserAccount)
class UserAccountAdmin(RegistrationAdmin):
    """Who owns jobs, and how to reach whom."""

    list_display = ("name", "full_name", "email", "their_projects", "team")
    list_filter = (ServiceFilter,)
    search_fields = ("name", "full_name", "email", "team")

    @admin.display(description="projects")
    def their_projects(self, account: UserAccount) -> str:
        """Show the projects in one line."""
        return ", ".join(account.projects)
