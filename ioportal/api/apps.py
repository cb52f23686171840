"""The app of the REST API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.api"
