"""The agent as a process: from a log that grows to the portal."""

TRACE = (
    "00000100:00100000:5.0:{second}.{micro:06}:0:17344:0:"
    "(service.c:2114:ptlrpc_server_handle_request()) Handled RPC "
    "pname:cluuid+ref:pid:xid:nid:opc mdt00_003:0f1c2d3e-1111-2222-3333-444455556666+24:9121:"
    "x{xid}:12345-{nid}@gni:101 Request procesed in 143us (171us total) trans 0 rc 301/301\n"
)


def trace(numbers):
    """One record for each number, 1,000 a second."""
    return "".join(
        TRACE.format(
            second=1441096200 + n // 1000, micro=n % 1000 * 1000, xid=10**15 + n, nid=n % 7
        )
        for n in numbers
    )


def test_a_growing_trace_reaches_the_portal_as_windows(agent, portal, eventually):
    log = agent.folder / "rpctrace.log"
    log.write_text(trace(range(1_000)))
    agent.configure(
        f'[[source]]\nname = "mds1"\nformat = "rpctrace"\ntoken_file = "token"\nfile = "{log}"\n'
        'every = "100ms"\n'
    )

    with agent.running():
        eventually(lambda: portal.account() == 1_000)
        with log.open("a") as growing:
            growing.write(trace(range(1_000, 2_500)))
        eventually(lambda: portal.account() == 2_500)

    assert portal.table()["count"].sum() == 2_500
    assert portal.account("accepted") == 2_500
    assert [batch["sequence"] for _, batch in portal.deliveries] == [1, 2]
