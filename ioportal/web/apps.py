"""The app of the pages."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.web"
