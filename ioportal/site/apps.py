"""The app of clusters, filesystems, servers and sources."""

from django.apps import AppConfig
from django.core.checks import Tags, register


class SiteConfig(AppConfig):
    """The app."""

    name = "ioportal.site"

    def ready(self) -> None:
        """Register the checks of stored values, which need the database."""
        from ioportal.site import checks  # noqa: PLC0415  (models are ready here)

        register(checks.job_id_patterns, Tags.database)
