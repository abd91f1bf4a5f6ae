"""What is published of a day: the statistic, its sensitivity, its histogram."""
