"""The decision server: decisions and outcomes over HTTP, with limits and an append-only log."""
