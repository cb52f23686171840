"""The app that limits log-in attempts."""

from django.apps import AppConfig


class ThrottlingConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.throttling"
