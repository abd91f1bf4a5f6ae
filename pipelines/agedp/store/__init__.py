"""The confidential store of READINGS: ingested parts, deduplicated months, daily totals, and retention."""
