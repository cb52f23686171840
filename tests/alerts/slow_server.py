"""Servers that accept connections, and answer slowly, incompletely or never."""

import socket
import time
from contextlib import contextmanager, suppress
from threading import Thread


@contextmanager
def running(converse):
    """Run a function on each connection, in a thread; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    Thread(target=handle, args=[connection], daemon=True).start()

        def handle(connection):
            with connection, suppress(OSError):
                converse(connection)

        Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)


def dripping(first, rest):
    """Return a conversation of some bytes, and then others every tenth of a second."""

    def converse(connection):
        connection.sendall(first)
        for _ in range(100):
            connection.sendall(rest)
            time.sleep(0.1)

    return converse


def endless(line, sent, name):
    """Return a conversation of one line again and again; `sent` gets the number of its bytes."""
    lines = line * (100_000 // len(line))

    def converse(connection):
        connection.recv(1_000)
        sent[name] = 0
        while sent[name] < 100e6:
            connection.sendall(lines)
            sent[name] += len(lines)

    return converse


def starttls_dripping(connection):
    """Offer STARTTLS, and drip its handshake."""
    lines = connection.makefile("rb")
    connection.sendall(b"220 slow\r\n")
    for line in lines:
        if line.startswith(b"STARTTLS"):
            connection.sendall(b"220 go\r\n")
            dripping(b"\x16\x03\x03\x3f\xff\x02", b"\0")(connection)
        connection.sendall(b"250-slow\r\n250 STARTTLS\r\n")


def smtp_with_final_answer(answer, ends):
    """Return an SMTP conversation that ends with an answer; `ends` gets an item for each mail."""

    def converse(connection):
        lines = connection.makefile("rb")
        connection.sendall(b"220 cut\r\n")
        for line in lines:
            if line.startswith(b"DATA"):
                connection.sendall(b"354 go\r\n")
                while lines.readline() != b".\r\n":
                    pass
                ends.append(answer)
                connection.sendall(answer)
                return
            connection.sendall(b"250 OK\r\n")

    return converse
