"""Runs beside the sources: reads them, keeps batches on disk, ships them to the portal."""
