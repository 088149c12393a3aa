"""How fast `discreet serve` is, beside other servers: python -m benchmarks.service."""
