"""Fitting predictors that are linear in the columns: rows, objective, curvature, descent."""
