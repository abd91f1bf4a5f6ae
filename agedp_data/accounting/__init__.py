"""How privacy losses compose over time: ageing, temporal leakage, discounting, windows, bounded changes."""
