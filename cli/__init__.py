"""The `hermes` command. `--version` and the session lists start without the heavy libraries."""
