"""Engines: learning, judging and predicting where the rows are. Statistics add, so a cluster is a map and a sum."""
