"""Altair charts of plain figures: tables `{"fields": [...], "rows": [[...], ...]}`, lists and names.

A chart names its data sets, so that a page can hold the chart once and fill in other data.
"""
