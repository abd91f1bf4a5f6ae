"""What the house notes for itself beside the ledger: coverage, true means, who was counted. Confidential."""
