"""Sources that are files, pipes or folders of files."""
