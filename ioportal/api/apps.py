"""The app of the REST API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.api"
