"""The paper's experiments, and our own: what is played, what is claimed, what is drawn.

An experiment is one declarative module that ends in an `Experiment`. To add one:

1. Write a module beside this one with its sizes at each `Scale`, as data of its own, and three
   functions. ``cells(sizes)`` lists `Cell`s: frozen dataclasses of plain data (numbers, text,
   None), one of them the seed, with ``run()``, which returns `Reading`s (quantity, round, value),
   and ``prepare()``, which compiles what ``run`` needs. `_play.Play` is the cell for a variant in
   an environment; anything else that can be pickled will do. The dataclass's fields are the
   cell's identity: the same fields give the same readings, on any machine and in any order.
   ``claims(results)`` returns `Claim`s, ``figures(results)`` what is drawn; both read what was
   measured through `Results`, and both have to cope with the smallest scale.
2. Add its ``EXPERIMENT`` to the table in `_reproduce.py`.

The command line, the runner, the folder of a run, its report and the contract tests then know it.

`_reproduce` is one call of ``discreet reproduce``: it runs cells (`_run`), keeps them (`_folder`),
and writes a report (`_report`). `_experiment` and `_claims` are the words that all of them
share. `_demo` shows the variants experiment in ``discreet demo``. Nothing here touches a person's
data.
"""
