"""What a MODEL is made from, beside its chains: the envelope of all households, and what they really remember."""
