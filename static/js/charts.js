// Draws the figures that the page carries, in the colours of the theme in use, and turns a zoom into
// an address: the page for that range comes from the server, with its tables and twins.
"use strict";

(() => {
  const CONFIG = {
    displayModeBar: false,
    responsive: true,
    doubleClick: false,
    scrollZoom: false,
    showTips: false,
  };
  const MINUTES = 300_000; // in milliseconds
  const NARROW = 480; // pixels: the legend takes several lines there, of two names each,
  const LEGEND_LINE = 17; // whose height the plot must not lose
  const WORDS_LINE = 13; // pixels: words above the plot stand in lines, so many at most,
  const WORDS_LINES = 6; // and what finds no place is left to the colour of its line or shade
  const WORDS_APART = 8;
  const pen = document.createElement("canvas").getContext("2d");
  const probe = document.createElement("span");
  probe.hidden = true;
  document.documentElement.append(probe);

  // "--series-1/0.2" is the colour of that token at that opacity, for the theme in use.
  function colour(token) {
    const [name, opacity] = token.split("/");
    probe.style.color = `var(${name})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
    return opacity ? `rgba(${red},${green},${blue},${opacity})` : `rgb(${red},${green},${blue})`;
  }

  function resolved(value) {
    if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) return typeof value[0] === "object" ? value.map(resolved) : value;
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, resolved(part)]));
  }

  // Gives the words of marks and gaps lines of their own between legend and plot, where they cover
  // neither data nor each other; the lines of marks lead up to their words.
  function withWords({ annotations, height, legend, margin, shapes, xaxis }, width) {
    const room = width - margin.l - margin.r;
    const plotHeight = height - margin.t - margin.b;
    const moments = xaxis.range.map((local) => Date.parse(`${local}Z`));
    const taken = []; // of each line: up to where
    const tops = new Map();
    const placed = [];
    for (const words of annotations) {
      pen.font = `${words.font.size}px ${getComputedStyle(document.body).fontFamily}`;
      const length = pen.measureText(words.text.replaceAll("&lt;", "<")).width + WORDS_APART;
      const share = (Date.parse(`${words.x}Z`) - moments[0]) / (moments[1] - moments[0]);
      const wanted = share * room - (words.xanchor === "center" ? length / 2 : 0);
      const left = Math.max(0, Math.min(wanted, room - length));
      const free = taken.findIndex((end) => end <= left);
      const line = free < 0 ? taken.length : free;
      if (line === WORDS_LINES) continue;
      taken[line] = left + length;
      tops.set(words.x, Math.max(tops.get(words.x) ?? 0, line * WORDS_LINE));
      const place = { xanchor: "left", xshift: left - share * room, yshift: line * WORDS_LINE };
      placed.push({ ...words, ...place });
    }
    const above = taken.length * WORDS_LINE;
    return {
      annotations: placed,
      height: height + above,
      legend: { ...legend, y: legend.y + above / plotHeight },
      margin: { ...margin, t: margin.t + above },
      shapes: shapes.map((shape) =>
        shape.type === "line" ? { ...shape, y1: 1 + (tops.get(shape.x0) ?? 0) / plotHeight } : shape,
      ),
    };
  }

  function narrowed({ height, legend, xaxis }, traces) {
    const names = traces.filter((trace) => trace.showlegend !== false).length;
    return {
      height: height + LEGEND_LINE * Math.ceil(names / 2),
      legend: { ...legend, x: -0.2, entrywidth: 95, font: { size: 9 } },
      xaxis: xaxis.dtick ? { ...xaxis, dtick: 2 * xaxis.dtick } : xaxis,
    };
  }

  function layout(figure, width) {
    const told = figure.layout.annotations?.length ? withWords(figure.layout, width) : {};
    const roomy = { ...figure.layout, ...told };
    return resolved({
      ...roomy,
      ...(width < NARROW ? narrowed(roomy, figure.data) : {}),
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: "--ink-soft" },
      hoverlabel: { bgcolor: "--panel", bordercolor: "--line-strong", font: { color: "--ink" } },
    });
  }

  function draw(plot) {
    const figure = JSON.parse(document.getElementById(plot.dataset.plot).textContent);
    plot.querySelector("noscript")?.remove();
    const isNew = !plot.classList.contains("js-plotly-plot");
    Plotly.react(plot, resolved(figure.data), layout(figure, plot.clientWidth), CONFIG);
    if (!isNew) return;
    plot.on("plotly_click", ({ points: [{ customdata }] }) => {
      if (customdata) location.assign(customdata); // the jobs behind a bar
    });
    const charts = plot.closest("[data-charts]");
    if (!charts) return;
    plot.on("plotly_relayout", (change) => {
      const start = change["xaxis.range[0]"];
      if (start) go(charts, { start, end: change["xaxis.range[1]"] });
    });
    plot.on("plotly_doubleclick", () => go(charts, { start: null, end: null }));
  }

  // Plotly gives local times as "2017-07-06 09:52:55.1234"; ranges of minutes need no fractions.
  function moment(local, offset, digits) {
    return local.replace(" ", "T").slice(0, digits) + offset;
  }

  function go(charts, range) {
    const address = new URL(location.href);
    const isLong = Date.parse(range.end) - Date.parse(range.start) > MINUTES;
    for (const [name, local] of Object.entries(range)) {
      if (local === null) address.searchParams.delete(name);
      else address.searchParams.set(name, moment(local, charts.dataset.offset, isLong ? 19 : 23));
    }
    const link = document.createElement("a");
    link.href = address.pathname + address.search;
    link.hidden = true;
    charts.closest("[hx-boost]").append(link);
    htmx.process(link);
    link.click();
  }

  function drawAll(root) {
    root.querySelectorAll("[data-plot]").forEach(draw);
  }

  drawAll(document);
  document.addEventListener("themechange", () => drawAll(document));
  document.addEventListener("figureschange", (event) => drawAll(event.target));
  document.addEventListener("htmx:afterSwap", (event) => drawAll(event.detail.elt));
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.shouldSwap) detail.target.querySelectorAll(".js-plotly-plot").forEach(Plotly.purge);
  });
  // A zoom that the server did not answer is taken back.
  for (const failed of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(failed, () => drawAll(document));
  }
})();
