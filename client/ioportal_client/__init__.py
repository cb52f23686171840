"""Client of ioportal's API: `Portal` for programs, the console script `ioportal` for people."""

from ioportal_client.portal import Portal, PortalError, Refused, Unavailable
from ioportal_client.settings import Settings, SettingsError

__all__ = ["Portal", "PortalError", "Refused", "Settings", "SettingsError", "Unavailable"]
