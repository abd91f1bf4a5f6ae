"""Smoothed estimates of a release: from its published rows, the calendar and the weather alone.

Nothing here opens a run file, a ledger or a confidential folder; whoever has a release folder can run it.
"""
