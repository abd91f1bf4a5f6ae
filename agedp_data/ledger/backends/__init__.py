"""Where a ledger is stored: SQLite and PostgreSQL behind one interface."""
