"""The scoring formulas of a model, and compilers from them."""
