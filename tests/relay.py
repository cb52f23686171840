"""Relay a service's socket: ``python -m tests.relay LISTEN HOST [PORT]``; HOST may be a path.

After SIGSTOP it behaves like a frozen service: the kernel accepts connections without a response.
"""

import asyncio
import sys


async def main(listen, host, port=None):
    async def relay(reader, writer):
        target = asyncio.open_connection(host, port) if port else asyncio.open_unix_connection(host)
        try:
            target_reader, target_writer = await target
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, target_writer), pump(target_reader, writer))

    server = await asyncio.start_unix_server(relay, listen, backlog=1024)
    await server.serve_forever()


async def pump(reader, writer):
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
