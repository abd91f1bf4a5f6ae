"""What a promise grants, what lies ahead under it, and what other promises would cost."""
