"""The app of rules' findings and what people do about them."""

from django.apps import AppConfig


class FlagsConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.flags"
