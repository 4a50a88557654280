"""CPU of one request of the engine client, against a server without latency in another process.

``python bench/engine_client.py 40 20000``: requests in flight, and how many in all.
"""

import asyncio
import multiprocessing
import resource
import sys
import time

import orjson
import uvloop

from regen_consumer.engine import answer, request
from regen_consumer.engine.client import Engine
from regen_consumer.engine.split import Opening

TEXT = "thought " * 600 + "\n</think>\n\n" + "word " * 640 + "<|im_end|>"  # 8 KB
BODY = orjson.dumps(
    {
        "id": "x",
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": TEXT, "reasoning_content": None},
                "finish_reason": "stop",
                "matched_stop": 151645,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1240},
    }
)
REPLY = (
    b"HTTP/1.1 200 OK\r\ndate: x\r\nserver: uvicorn\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n" % len(BODY) + BODY
)


class Instant(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        while end >= 0:
            head = self.buffer[:end]
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            self.transport.write(REPLY)
            end = self.buffer.find(b"\r\n\r\n")


def serve(port):
    async def forever():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Instant, "127.0.0.1", 0, backlog=4096)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(forever())


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def main(url, in_flight, requests, *, whole):
    engine = Engine(url, kind="sglang")
    question = request.Question(
        model="tiny",
        messages=orjson.dumps([{"role": "user", "content": "x" * 4000}]),
        tools=None,
        sampling={"temperature": 1.0, "top_p": 0.95, "top_k": 20},
        max_tokens=8192,
    )
    ready = request.body(question, request.SGLANG, rid="a" * 32)

    async def one():
        if not whole:
            assert (await engine.complete(ready, rid="a" * 32)).status == 200
            return
        rid = request.new_rid()
        body = request.body(question, request.SGLANG, rid=rid)
        answer.read(await engine.complete(body, rid=rid), model="tiny", opening=Opening.INSIDE)

    left = requests

    async def worker():
        nonlocal left
        while left > 0:
            left -= 1
            await one()

    await asyncio.gather(*(one() for _ in range(in_flight)))
    began_s, began_cpu_s = time.perf_counter(), cpu_s()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    took_s, used_s = time.perf_counter() - began_s, cpu_s() - began_cpu_s
    await engine.close()
    what = "body+complete+read" if whole else "complete"
    print(
        f"{what:20} {in_flight:4} in flight: {used_s / requests * 1e3:.4f} ms CPU per request, "
        f"{requests / took_s:,.0f} requests/s"
    )


if __name__ == "__main__":
    port = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}"
    for whole in (False, True):
        uvloop.run(main(url, int(sys.argv[1]), int(sys.argv[2]), whole=whole))
    server.kill()
