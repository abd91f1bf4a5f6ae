"""Published statistics of a day: series, sensitivities, histograms."""
