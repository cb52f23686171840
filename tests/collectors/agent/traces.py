"""Generated debug logs."""

TRACE = (
    "00000100:00100000:5.0:{second}.{micro:06}:0:17344:0:"
    "(service.c:2114:ptlrpc_server_handle_request()) Handled RPC "
    "pname:cluuid+ref:pid:xid:nid:opc mdt00_003:0f1c2d3e-1111-2222-3333-444455556666+24:9121:"
    "x{xid}:12345-{nid}@gni:101 Request procesed in 143us (171us total) trans 0 rc 301/301\n"
)
FIRST_SECOND = 1441096200


def trace(numbers):
    """Return one record per number, 1,000 per second."""
    return "".join(
        TRACE.format(
            second=FIRST_SECOND + n // 1000, micro=n % 1000 * 1000, xid=10**15 + n, nid=n % 7
        )
        for n in numbers
    )
