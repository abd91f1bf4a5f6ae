"""Day budgets under a promise, forecasts of a series, and the cost of other promises."""
