"""The daemon: the one place where adapters, sessions, compression and the agent meet."""
