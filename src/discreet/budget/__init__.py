"""Several learners that share people, and so share one budget.

`_rule` says when items fit, `_items` what each of them states, `_budget` keeps the books.
"""

from discreet.budget._budget import Budget
from discreet.budget._items import Item

__all__ = ["Budget", "Item"]
