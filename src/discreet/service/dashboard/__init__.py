"""The dashboard for people: releases, public counts and post-processing of them, in a browser.

It sees what a ranker sees, and never a row or a reward. Nothing is loaded from elsewhere, and
everything is readable without scripts.
"""

from discreet.service.dashboard._routes import routes

__all__ = ["routes"]
