"""Tables, figures and self-contained pages. Nothing here plays a round or chooses a setting.

`_curves` and `_figures` draw, `_numbers` words a figure with its uncertainty, `_comparison` lays
outcomes side by side, `_page` turns sections into one HTML file, `_provenance` says where it is
from.
"""
