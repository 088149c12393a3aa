"""Numbers with their uncertainty, figures, and self-contained pages.

`_numbers` words a number, `_curves` says what a figure shows, `_figures` draws it, `_page` puts
text, tables and figures into one HTML file. Nothing here plays a round or chooses a setting.
"""
