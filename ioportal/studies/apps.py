"""The app of filters, populations and trends."""

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    """The app."""

    name = "ioportal.studies"
