"""Files written in one step: readers see the old one or the whole new one."""

import os
from pathlib import Path


def replace(path: Path, data: bytes) -> Path:
    """Write a file, and its folder if need be; after a failure the old file is still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
