"""How much of a privacy loss passes through a Markov kernel: the leakage function L(a), exact and as a bound."""
