"""The app of segments, loading and attribution."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.ingest"

    def ready(self) -> None:
        """Load the task queue; attribute rows again when the registered site changes."""
        import ioportal.celery  # noqa: F401, PLC0415  (it reads settings, which are ready here)
        from ioportal.ingest import attribution_stage  # noqa: PLC0415  (models are ready here)
        from ioportal.site.registration import site_changed  # noqa: PLC0415  (models are ready here)

        site_changed.connect(attribution_stage.mark_changed_site, dispatch_uid="attribute again")
