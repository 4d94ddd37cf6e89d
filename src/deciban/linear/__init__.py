"""Fitting linear predictors: design matrix, objective, curvature, descent."""
