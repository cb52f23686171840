"""One module per raw format: each writes text exactly as its source would."""
