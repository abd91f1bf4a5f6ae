"""Internal records, in addition to the ledger: coverage, true means, roster history. Confidential."""
