"""Vowpal Wabbit behind a socket, for where its `vw` program is not installed.

The wheel on PyPI has the library without the program, whose --daemon this stands for: the same text
format over TCP, a prediction for each example, the model in memory. The library is C++; the loop
around it is Python's, with uvloop. It only predicts, as the daemon does for examples without a
label.
"""

import asyncio
import sys
from typing import Any

import uvloop
import vowpalwabbit


class _Connection(asyncio.Protocol):
    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self._model = model
        self._data = b""
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *examples, self._data = (self._data + data).split(b"\n\n")
        for one in examples:
            chances = self._model.predict(one.decode())
            ordered = sorted(enumerate(chances), key=lambda pair: -pair[1])
            line = ",".join(f"{place}:{chance:.6f}" for place, chance in ordered)
            self._transport.write(f"{line}\n\n".encode())


async def _serve(port: int) -> None:
    model = vowpalwabbit.Workspace("--cb_explore_adf -q ca --quiet")
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(model), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))
