"""The trusted side: the only code that holds rows of data.

Rows come in through `Curator`; the only thing that goes out is a `discreet.Release`. Nothing in
this package prints, logs or raises anything that contains a row.
"""
