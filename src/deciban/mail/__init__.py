"""A filter of mail: it predicts, learns and forgets, without an estimator."""
