"""One module per raw format; each reproduces the text of its original."""
