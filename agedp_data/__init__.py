"""WHAT THINGS ARE: readers, tables, chains, privacy, notions, noise and the ledger."""
