"""Tables, figures and self-contained pages. Nothing here plays a round or chooses a setting.

`curves` and `figures` draw, `numbers` words a figure with its uncertainty, `comparison` lays
outcomes side by side, `page` turns sections into one HTML file, `provenance` says where it is from.
"""
