"""Charts in the browser, which are drawn near the window."""


def drawn(page, name):
    """Scroll to a chart and return it once it is drawn."""
    plot = page.locator(f"[data-plot='figure-{name}']")
    plot.evaluate("plot => plot.scrollIntoView({ block: 'center' })")
    plot.locator(".main-svg").first.wait_for()
    return plot


def key(page, name):
    """Return the key of the marks of a chart, once it is drawn."""
    drawn(page, name)
    return page.locator(f"[data-part='key-figure-{name}']")
