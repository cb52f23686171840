"""Kills, pauses and floods a complete installation, and verifies every operation's count."""
