"""The app of hypertables and coverage."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.telemetry"
