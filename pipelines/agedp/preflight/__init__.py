"""Checks of the input files before a release spends epsilon on them: facts, findings and alerts.

Before the first release of a population the content of its files may refuse a run, because nothing is published yet.
After that readings decide nothing: the same findings, and the alerts, are for the operator only.
"""
