"""Batches from the spool to the portal."""
