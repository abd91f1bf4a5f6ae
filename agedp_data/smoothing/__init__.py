"""Smoothed estimates of a noisy daily series, from published figures, the calendar and the weather alone."""
