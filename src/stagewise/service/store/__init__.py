"""Where the log lies: SQLite in a file, or PostgreSQL."""
