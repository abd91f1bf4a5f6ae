"""Release folders: writing, reading, verification and origin; and the transfer of ledgers."""
