"""A release on its way to other hands, a ledger on the move: what a folder says, and whether that was published."""
