"""The app of segments, loading and attribution."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.ingest"

    def ready(self) -> None:
        """Name the queue that tasks go to; charge anew when the registered site changes."""
        import ioportal.celery  # noqa: F401, PLC0415  (it reads settings, ready only here)
        from ioportal.ingest import attribution_stage  # noqa: PLC0415  (models are ready only here)
        from ioportal.site.registration import site_changed  # noqa: PLC0415  (the same)

        site_changed.connect(attribution_stage.mark_all_dirty, dispatch_uid="charge anew")
