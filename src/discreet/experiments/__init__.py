"""The paper's experiments, and our own: what is played, what is claimed, what is drawn.

An experiment is one small declarative module that ends in an `Experiment`. To add one:

1. Write a module beside this one with three functions.
   ``cells(scale)`` lists `Cell`s: frozen dataclasses of plain data (numbers, text, None), one of
   them the seed, with ``run()``, which returns `Reading`s (quantity, round, value), and
   ``prepare()``, which compiles what ``run`` needs. `_play.Play` is the cell for a variant in an
   environment; anything else that can be pickled will do. The dataclass's fields are the cell's
   identity: the same fields give the same readings, on any machine and in any order.
   ``claims(results)`` returns `Claim`s, ``figures(results)`` what is drawn; both read what was
   measured through `Results`, and both have to cope with the smallest scale.
2. Add its ``EXPERIMENT`` to the table in `_table.py`.

The command line, the runner, the store, the report and the contract tests then know it.

`_cell` and `_results` are the data, `_store` keeps it, `_backends` and `_runner` produce it,
`_claims` judges it, `_reproduce` puts it all together. Nothing here touches a person's data.
"""
