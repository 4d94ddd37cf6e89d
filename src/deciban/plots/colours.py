"""Colours of charts."""

# Okabe and Ito (2008): distinguishable for colour-blind readers
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
FOR, AGAINST = "#0072B2", "#D55E00"  # evidence; the direction of bars says the same without colour
GREY, MAGENTA, INK = "#888888", "#B5006E", "#222222"
