"""Values of this package as trees of JSON values and named arrays, and back: what a model file holds."""
