"""Wait until a service says where it is and its demo decides: `answers.py LOG KEY`."""

import re
import sys
import time
from pathlib import Path
from urllib.request import urlopen

from discreet.client import Client

PATIENCE = 180.0  # seconds; far more than it needs

log, key = Path(sys.argv[1]), sys.argv[2]
until = time.monotonic() + PATIENCE
while not (found := re.search(r"discreet serves at (http://\S+)\n", log.read_text("utf-8"))):
    assert time.monotonic() < until, log.read_text("utf-8")
    time.sleep(0.1)
with Client(found[1], key, bandit="news") as client:
    while "news" not in {one.name for one in client.bandits()} or client.bandit().events < 10:
        assert time.monotonic() < until, "no visitors"
        time.sleep(0.2)
    articles = [{"id": "cup-final", "features": {"topic": "sport"}}, {"id": "opera-night"}]
    shown = client.rank(articles, context={"age": "under 30"})
with urlopen(f"{found[1]}/", timeout=30) as page:  # noqa: S310  # this machine
    text = page.read().decode("utf-8")
assert "<title" in text
print(f"{found[1]} chose {shown.action_id}, and the dashboard is there")
