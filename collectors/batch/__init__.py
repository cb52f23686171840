"""Formats that batch systems and launchers write."""
