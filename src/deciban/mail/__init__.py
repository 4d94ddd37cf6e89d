"""A mail filter that classifies, learns and forgets without scikit-learn."""
