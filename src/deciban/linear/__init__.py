"""Linear models: design matrix, responses, objective, solvers, separation, inference."""
