"""Generative models: class counts and blocks of evidence that add; estimates, scores and selection from them."""
