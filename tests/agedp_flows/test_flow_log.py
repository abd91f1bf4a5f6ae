"""What Prefect logs of a task that failed."""

from __future__ import annotations

import logging
import sys

import agedp_flows.release_flow  # noqa: F401  (as every run does)


def logged() -> str:
    """What a task's logger makes of an error, told to add the traceback of now, as Prefect tells it."""
    log = logging.getLogger("prefect.task_runs")
    record = log.makeRecord(log.name, logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
    assert log.filter(record)
    return logging.Formatter().format(record)


def test_a_task_that_returned_a_failed_state_is_logged_without_a_traceback_and_one_that_raised_with_it():
    assert logged() == "failed"
    try:
        raise ValueError("seen")
    except ValueError:
        assert logged().endswith("ValueError: seen")
