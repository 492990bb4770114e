"""The gateway's one HTTP server: health, metrics, the session browser, and what adapters mount."""
