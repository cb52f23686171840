PYTHON ?= python3

.PHONY: services stop env

services:  ## Start PostgreSQL and Valkey
	@$(PYTHON) -m scripts.services start

stop:  ## Stop what this checkout started
	@$(PYTHON) -m scripts.services stop

env:  ## Print the settings of this checkout's services as NAME=value lines
	@$(PYTHON) -m scripts.services env
