"""Weighted evidence: pieces of evidence, leave-one-out, and the convex fit of their weights."""
