"""Registration pages for staff, in Django's admin."""

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
    Project,
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

admin.site.site_header = "ioportal: site registration"
admin.site.site_title = "ioportal"
admin.site.index_title = "Site"


def is_staff(request: HttpRequest) -> bool:
    """Whether the user may see and change registered objects."""
    return bool(request.user.is_active and request.user.is_staff)


def _data(path: str) -> Callable[[Model], str]:
    """Return a column that marks simulated rows; `path` leads from a row to the flag."""

    @admin.display(description="data")
    def data(row: Model) -> str:
        try:
            return "simulated" if attrgetter(path)(row) else "real"
        except AttributeError:  # a NID of no node
            return ""

    return data


class StaffAdmin(admin.ModelAdmin):
    """Pages for all staff, without further permissions."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the app to staff."""
        return is_staff(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow staff to view."""
        return is_staff(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow staff to add."""
        return is_staff(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow staff to change."""
        return is_staff(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Forbid deletion: telemetry and jobs refer to these rows."""
        return False


class RegistrationAdmin(StaffAdmin):
    """Registered objects; a change is applied to existing data as well."""

    def save_related(
        self,
        request: HttpRequest,
        form: ModelForm,
        formsets: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save the object, then apply the change to existing data."""
        super().save_related(request, form, formsets, change)
        apply(form.instance, form.changed_data)


class RegistrationInline(admin.TabularInline):
    """Registered objects on the page of their parent."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow staff to view."""
        return is_staff(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow staff to add."""
        return is_staff(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Allow staff to change."""
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
                "description": "How Lustre NIDs map to the nodes of this cluster. Without a rule, "
                "assign a node to each NID under NIDs or with 'manage.py register'.",
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
    """Lustre filesystems and their job-id patterns."""

    list_display = ("name", "job_id_pattern", _data("simulated"))
    filter_horizontal = ("clusters",)
    search_fields = ("name",)


class ServerVersionInline(RegistrationInline):
    """Lustre versions of a server."""

    model = ServerVersion
    extra = 1
    ordering = ("since",)
    verbose_name = "Lustre version"
    verbose_name_plural = "Lustre versions: charts show a break where counting rules changed"


class TargetInline(RegistrationInline):
    """Targets of a server."""

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

    format = forms.ChoiceField(choices=[(form.name, form.label) for form in FORMATS if form.scopes])


@admin.register(Source)
class SourceAdmin(RegistrationAdmin):
    """Feeds of agents; each needs a token (page Tokens)."""

    list_display = ("name", "format", "scope", "poll_interval_s", "last_batch_at")
    list_filter = ("format",)
    list_select_related = ("cluster", "filesystem", "server")
    search_fields = ("name",)
    autocomplete_fields = ("server",)
    form = SourceForm

    @admin.display(description="scope")
    def scope(self, source: Source) -> str:
        """Name the cluster, filesystem or server."""
        return str(source.scope)


@admin.register(Node)
class NodeAdmin(RegistrationAdmin):
    """Compute and login nodes; accounting records add missing ones."""

    list_display = ("name", "cluster", _data("cluster.simulated"))
    list_filter = ("cluster",)
    list_select_related = ("cluster",)
    search_fields = ("name",)


class UnregisteredFilter(admin.SimpleListFilter):
    """Filter: NIDs with or without a node."""

    title = "node"
    parameter_name = "registered"

    def lookups(
        self, _request: HttpRequest, _model_admin: admin.ModelAdmin[Nid]
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        return [("no", "not registered"), ("yes", "registered")]

    def queryset(self, _request: HttpRequest, nids: QuerySet[Nid]) -> QuerySet[Nid]:
        """Apply the filter."""
        return nids if self.value() is None else nids.filter(node__isnull=self.value() == "no")


@admin.register(Nid)
class NidAdmin(RegistrationAdmin):
    """Lustre network ids and their nodes."""

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
    """Filter: accounts of persons or of services."""

    title = "kind"
    parameter_name = "service"

    def lookups(
        self, _request: HttpRequest, _model_admin: admin.ModelAdmin[UserAccount]
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        return [("no", "persons"), ("yes", "services")]

    def queryset(
        self, _request: HttpRequest, accounts: QuerySet[UserAccount]
    ) -> QuerySet[UserAccount]:
        """Apply the filter."""
        if self.value() is None:
            return accounts
        return accounts.filter(team="") if self.value() == "no" else accounts.exclude(team="")


@admin.register(UserAccount)
class UserAccountAdmin(RegistrationAdmin):
    """Owners of jobs and their contacts."""

    list_display = ("name", "uid", "full_name", "email", "project_names", "team")
    list_filter = (ServiceFilter,)
    search_fields = ("name", "full_name", "email", "team")

    @admin.display(description="projects")
    def project_names(self, account: UserAccount) -> str:
        """Show the projects in one line."""
        return ", ".join(account.projects)


@admin.register(Project)
class ProjectAdmin(RegistrationAdmin):
    """Projects and their contacts."""

    list_display = ("name", "contact_name", "address", "account")
    list_select_related = ("account",)
    search_fields = ("name", "contact", "email", "account__name")
    autocomplete_fields = ("account",)

    @admin.display(description="contact")
    def contact_name(self, project: Project) -> str:
        """Show the name of the contact."""
        return project.contact_name

    @admin.display(description="address")
    def address(self, project: Project) -> str:
        """Show the address of the contact."""
        return project.address
