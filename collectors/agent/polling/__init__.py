"""Sources that are read by running a command."""
