"""Write a stored learner, its ledger and a budget of this version: `python tests/stored/make.py`.

Run it when the format of stored files changes, for a new version only: files of older versions
stay as they are, so that `test_stored_formats.py` shows that they can still be read.
"""

from pathlib import Path

import numpy as np

import discreet


def main(folder: Path) -> None:
    """Fill a folder that is not there yet."""
    folder.mkdir()
    problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    privacy = discreet.Privacy(epsilon=1.0, delta=1e-6, contributions_per_user=2)
    budget = discreet.Budget(epsilon=2.0, delta=1e-5)
    bandit = discreet.LinUCB(
        problem, horizon=1_000, privacy=privacy, path=folder / "learner", budget=budget
    )
    for turn in range(400):
        decision = bandit.choose(np.eye(2), subject=f"person {turn}")
        bandit.learn(decision, 0.5)
    waiting = bandit.choose(np.eye(2))
    (folder / "waiting.txt").write_text(waiting.id)
    (folder / "head.txt").write_text(bandit.ledger.head)
    (folder / "rows.txt").write_text(str(bandit.rows))
    bandit.close()
    budget.save(folder / "budget")


if __name__ == "__main__":
    main(Path(__file__).parent / discreet.__version__)
