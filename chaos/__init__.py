"""Kills, pauses and floods a whole installation, and counts what became of every operation."""
