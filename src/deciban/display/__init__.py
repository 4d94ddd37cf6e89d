"""Explanations and summaries: data first, text and HTML second."""
