"""The app of segments, loading and attribution."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.ingest"
