"""What people read: explanations and summaries, data first, text and HTML second."""
