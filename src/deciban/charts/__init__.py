"""Charts of altair, made from plain figures: tables of `{"fields": [...], "rows": [[...], ...]}`, lists and names.

A chart names its data sets, so that a page can take the chart once and put other data in.
"""
