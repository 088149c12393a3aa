"""The paper's experiments, and our own: what is played, what is claimed, what is drawn.

An experiment is one small declarative module that ends in an `Experiment`. To add one:

1. Write a module beside this one with three functions.
   ``cells(scale)`` lists `Cell`s: frozen dataclasses of plain data (numbers, text, None), one of
   them the seed, with ``run()``, which returns `Reading`s (quantity, round, value), and
   ``prepare()``, which compiles what ``run`` needs. `play.Play` is the cell for a variant in an
   environment; anything else that can be pickled will do. The dataclass's fields are the cell's
   identity: the same fields give the same readings, on any machine and in any order.
   ``claims(results)`` returns `Claim`s, ``figures(results)`` what is drawn; both read what was
   measured through `Results`, and both have to cope with the smallest scale.
2. Add its ``EXPERIMENT`` to the table in `table.py`.

The command line, the runner, the store, the report and the contract tests then know it.

`cell` and `results` are the data, `store` keeps it, `backends` and `runner` produce it, `claims`
judges it, `reproduce` puts it all together. Nothing here touches a person's data.
"""
