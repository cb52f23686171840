// Downloads charts as images with their title, and with source, filters and time as a caption.
"use strict";

(() => {
  const WIDTH = 1000; // pixels
  const LINE = 17; // pixels
  const CHARACTERS = 150; // in a line
  const MARGIN = 10; // pixels

  const textOf = (element) => (element?.textContent ?? "").replace(/\s+/g, " ").trim();
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  function period({ xaxis }) {
    if (xaxis.type !== "date") return "";
    const [start, end] = xaxis.range.map((local) => String(local).replace("T", " ").slice(0, 19));
    return `${start} to ${end} ${xaxis.title.text.replace("Time ", "")}.`;
  }

  function wrapped(text) {
    const lines = [""];
    for (const word of text.split(" ")) {
      if (`${lines.at(-1)} ${word}`.length > CHARACTERS) lines.push("");
      lines.push(`${lines.pop()} ${word}`.trim());
    }
    return lines;
  }

  function captionOf(figure, plot, layout) {
    const parts = [
      plot.dataset.source ?? textOf(figure.querySelector("figcaption p")),
      ...[...document.querySelectorAll("[data-filters]")].map(textOf),
      textOf(figure.querySelector(".marks-key")),
      period(layout),
      `ioportal, ${location.host}: ${textOf(document.querySelector("h1"))}.`,
      textOf(document.querySelector(".simulated")),
    ];
    return parts.filter(Boolean).flatMap(wrapped);
  }

  // The margins of the plot as drawn: a legend of several lines, or long labels, expand them.
  async function drawnMargins({ data, layout }) {
    const sketch = document.createElement("div");
    await Plotly.newPlot(sketch, data, { ...layout, width: WIDTH });
    const { l, t } = sketch._fullLayout._size;
    Plotly.purge(sketch);
    return { l, t };
  }

  function withTexts({ data, layout }, margins, title, caption) {
    const margin = { ...layout.margin, ...margins };
    const below = caption.length * LINE + MARGIN;
    const place = { xref: "paper", yref: "paper", x: 0, xanchor: "left", xshift: MARGIN - margin.l };
    const text = { ...place, showarrow: false, align: "left", font: { color: layout.font.color } };
    const texts = [
      { ...text, text: `<b>${escaped(title)}</b>`, y: 1, yanchor: "bottom", yshift: margin.t },
      { ...text, text: caption.map(escaped).join("<br>"), y: 0, yanchor: "top", yshift: -margin.b },
    ];
    return {
      data,
      layout: {
        ...layout,
        annotations: [...(layout.annotations ?? []), ...texts],
        height: layout.height + LINE + MARGIN + below,
        margin: { ...margin, t: margin.t + LINE + MARGIN, b: margin.b + below },
        paper_bgcolor: "#ffffff",
      },
    };
  }

  async function download(button) {
    const figure = button.closest("figure, section");
    const plot = figure.querySelector("[data-plot]");
    const printed = window.printedFigure(plot, WIDTH);
    const caption = captionOf(figure, plot, printed.layout);
    const margins = await drawnMargins(printed);
    const image = withTexts(printed, margins, textOf(figure.querySelector("h2, h3")), caption);
    const { height } = image.layout;
    const format = button.dataset.image;
    const link = document.createElement("a");
    link.href = await Plotly.toImage(image, { format, width: WIDTH, height, scale: 2 });
    link.download = `${plot.dataset.plot.replace("figure-", "")}.${format}`;
    link.click();
  }

  function show() {
    for (const button of document.querySelectorAll("[data-image]")) button.hidden = false;
  }

  document.addEventListener("click", ({ target }) => {
    if (target.matches("[data-image]")) download(target);
  });
  document.addEventListener("htmx:afterSettle", show);
  show();
})();
