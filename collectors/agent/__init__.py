"""The agent: reads sources on their hosts, spools batches on disk, ships them to the portal."""
