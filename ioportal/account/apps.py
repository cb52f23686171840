"""The app of users' own data."""

from django.apps import AppConfig


class AccountConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.account"
