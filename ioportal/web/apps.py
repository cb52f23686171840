"""The app of pages."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.web"
