// Draws the figures of the page in the colours of the theme. A zoom loads the page for that range
// from the server, with its tables and exports.
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
  const NARROW = 480; // pixels; below, the legend has lines of one or two names each
  const FEW_TICKS = 4; // fit on a narrow chart
  const MONTH = 30 * 86_400_000; // in milliseconds
  const FONT_SIZE = 12; // pixels, as in charts/labels.py
  const LEGEND_LINE = 19; // pixels
  const LEGEND_ENTRY = 170; // pixels, of a short name with its symbol
  const LABEL_LINE = 15; // pixels, of labels above the plot
  const LABEL_LINES = 6; // further labels are omitted
  const LABEL_GAP = 8; // pixels
  const NUMBER = "number"; // name of labels, as in charts/time_axis.py
  const NEAR = "300px"; // around the window
  const pen = document.createElement("canvas").getContext("2d");
  const probe = document.createElement("span");
  probe.hidden = true;
  document.documentElement.append(probe);

  const PRINCIPAL = "--principal:"; // prefix of a name, as in charts/palette.py
  const principals = new Map(); // name to hue, for principals on the page

  // A principal has one hue in all charts and tables of the page. It keeps it when ranks change; hues of removed principals are reused.
  function recolour() {
    const swatches = [...document.querySelectorAll("[data-principal]")];
    const names = new Set([...swatches.map((swatch) => swatch.dataset.principal), ...drawnPrincipals()]);
    for (const name of principals.keys()) if (!names.has(name)) principals.delete(name);
    const free = hues().filter((hue) => ![...principals.values()].includes(hue));
    for (const name of names) {
      if (!principals.has(name)) principals.set(name, free.shift() ?? "--series-rest");
    }
    for (const swatch of swatches) {
      swatch.setAttribute("fill", `var(${principals.get(swatch.dataset.principal)})`);
    }
  }

  // Names in charts, which need not be in a table.
  function drawnPrincipals() {
    return [...document.querySelectorAll("[data-plot]")].flatMap((plot) =>
      figureOf(plot)
        .data.map((trace) => trace.marker?.color)
        .filter((token) => typeof token === "string" && token.startsWith(PRINCIPAL))
        .map((token) => token.slice(PRINCIPAL.length)),
    );
  }

  function hues() {
    const tokens = [];
    const style = getComputedStyle(document.documentElement);
    while (style.getPropertyValue(`--series-${tokens.length + 1}`)) {
      tokens.push(`--series-${tokens.length + 1}`);
    }
    return tokens;
  }

  // "--series-1/0.2" is the colour of a token in the current theme, with an opacity.
  function colour(token) {
    if (token.startsWith(PRINCIPAL)) {
      return colour(principals.get(token.slice(PRINCIPAL.length)) ?? "--series-rest");
    }
    const [name, opacity] = token.split("/");
    probe.style.color = `var(${name})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
    return opacity ? `rgba(${red},${green},${blue},${opacity})` : `rgb(${red},${green},${blue})`;
  }

  // Only colours are tokens: names and texts of users may begin with "--", too.
  function resolved(value, key = "") {
    const isToken = key.endsWith("color") && typeof value === "string" && value.startsWith("--");
    if (isToken) return colour(value);
    if (key === "colorscale" && Array.isArray(value)) return value.map(([at, token]) => [at, colour(token)]);
    if (Array.isArray(value)) {
      return typeof value[0] === "object" ? value.map((part) => resolved(part)) : value;
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolved(part, name)]));
  }

  function lengthOf({ font, text }) {
    pen.font = `${font.size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text.replaceAll("&lt;", "<")).width + LABEL_GAP;
  }

  // Numbers of marks that would overlap share a label: "6, 7".
  function joined(annotations, placeOf) {
    const labels = [];
    let latest = null;
    for (const label of annotations) {
      if (label.name !== NUMBER) {
        labels.push(label);
      } else if (latest && placeOf(label) < placeOf(latest) + lengthOf(latest)) {
        latest.text += `, ${label.text}`;
      } else {
        latest = { ...label };
        labels.push(latest);
      }
    }
    return labels;
  }

  // Places the labels of marks and gaps in lines between legend and plot, without overlap. The lines
  // of marks extend up to their labels.
  function withLabels({ annotations, height, legend, margin, shapes, xaxis }, width) {
    const room = width - margin.l - margin.r;
    const plotHeight = height - margin.t - margin.b;
    const place = (x) => (typeof x === "number" ? x : Date.parse(`${x}Z`));
    const [start, end] = xaxis.range.map(place);
    const shareOf = (label) => (place(label.x) - start) / (end - start);
    const taken = []; // right end of each line
    const tops = new Map();
    const placed = [];
    for (const label of joined(annotations, (each) => shareOf(each) * room)) {
      const length = lengthOf(label);
      const share = shareOf(label);
      const ideal = share * room - (label.xanchor === "center" ? length / 2 : 0);
      const left = Math.max(0, Math.min(ideal, room - length));
      const free = taken.findIndex((end) => end <= left);
      const line = free < 0 ? taken.length : free;
      if (line === LABEL_LINES) continue;
      taken[line] = left + length;
      tops.set(label.x, Math.max(tops.get(label.x) ?? 0, line * LABEL_LINE));
      const shift = { xanchor: "left", xshift: left - share * room, yshift: line * LABEL_LINE };
      placed.push({ ...label, ...shift });
    }
    const above = taken.length * LABEL_LINE;
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

  // Distances of ticks are numbers, or months such as "M3".
  const doubled = (dtick) => (typeof dtick === "number" ? 2 * dtick : `M${2 * dtick.slice(1)}`);
  const milliseconds = (dtick) => (typeof dtick === "number" ? dtick : MONTH * dtick.slice(1));

  function withFewTicks(xaxis) {
    const { dtick, range, type } = xaxis;
    if (type !== "date" || !dtick) return xaxis;
    const [start, end] = range.map((local) => new Date(local));
    return (end - start) / milliseconds(dtick) < FEW_TICKS ? xaxis : { ...xaxis, dtick: doubled(dtick) };
  }

  function narrowed({ height, legend, xaxis }, traces, width) {
    const names = traces.filter((trace) => trace.showlegend !== false).length;
    const inLine = width < 2 * LEGEND_ENTRY ? 1 : 2;
    const lines = Math.ceil(names / inLine) + 1; // one more, so that the axis title ends below
    return {
      height: height + LEGEND_LINE * lines,
      legend: { ...legend, x: -0.2, entrywidth: 130 },
      xaxis: withFewTicks(xaxis),
    };
  }

  // Names hidden or isolated with the legend of a chart, preserved while the tab is open.
  const CHOICES = `legends of ${location.pathname}`;
  const choices = storedChoices();
  const nameOf = (trace) => trace.legendgroup ?? trace.name;

  function storedChoices() {
    try {
      return new Map(JSON.parse(sessionStorage.getItem(CHOICES) ?? "[]"));
    } catch {
      return new Map(); // storage that is unavailable or was changed by others
    }
  }

  function remember(plot) {
    const names = new Set(plot.data.map(nameOf).filter(Boolean));
    const visible = new Set(
      plot.data.filter((trace) => trace.visible !== "legendonly").map(nameOf).filter(Boolean),
    );
    const absent = [...(choices.get(plot.dataset.plot)?.hidden ?? [])].filter((name) => !names.has(name));
    choices.set(plot.dataset.plot, {
      hidden: [...absent, ...[...names].filter((name) => !visible.has(name))],
      only: names.size > 1 && visible.size === 1 ? [...visible][0] : null,
    });
    sessionStorage.setItem(CHOICES, JSON.stringify([...choices]));
  }

  function withChoices(plot, traces) {
    const { hidden, only } = choices.get(plot.dataset.plot) ?? {};
    if (!hidden) return traces;
    const isIsolated = traces.some((trace) => nameOf(trace) === only);
    const isOff = (name) => name && (isIsolated ? name !== only : hidden.includes(name));
    return traces.map((trace) => (isOff(nameOf(trace)) ? { ...trace, visible: "legendonly" } : trace));
  }

  function layout(figure, width, keepsZoom) {
    const labels = figure.layout.annotations?.length ? withLabels(figure.layout, width) : {};
    const roomy = { ...figure.layout, ...labels };
    const fitting = width < NARROW ? { ...roomy, ...narrowed(roomy, figure.data, width) } : roomy;
    return resolved({
      ...fitting,
      // Keep the zoom while the range of the page is unchanged.
      xaxis: { ...fitting.xaxis, uirevision: keepsZoom && String(fitting.xaxis.range) },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: FONT_SIZE, color: "--ink-soft" },
      hoverlabel: { bgcolor: "--panel", bordercolor: "--line-strong", font: { color: "--ink" } },
    });
  }

  const figureOf = (plot) => JSON.parse(document.getElementById(plot.dataset.plot).textContent);

  function draw(plot, keepsZoom) {
    const figure = figureOf(plot);
    plot.querySelector("noscript")?.remove();
    const isNew = !plot.classList.contains("js-plotly-plot");
    const traces = resolved(withChoices(plot, figure.data));
    Plotly.react(plot, traces, layout(figure, plot.clientWidth, keepsZoom), CONFIG);
    if (!isNew) return;
    plot.on("plotly_restyle", () => remember(plot));
    plot.on("plotly_click", ({ event, points }) => {
      const address = pointAt(plot, event, points)?.customdata;
      if (address) location.assign(address); // the jobs behind a bar
    });
    const charts = plot.closest("[data-charts]");
    if (!charts) {
      plot.on("plotly_doubleclick", () => draw(plot, false)); // undo the zoom
      return;
    }
    plot.on("plotly_relayout", (change) => {
      const start = change["xaxis.range[0]"];
      if (start) go(charts, { start, end: change["xaxis.range[1]"] });
    });
    plot.on("plotly_doubleclick", () => go(charts, { start: null, end: null }));
  }

  // The point of a stack at the height of the pointer; Plotly selects those of all layers.
  function pointAt(plot, event, points) {
    if (points.length === 1) return points[0];
    const [low, high] = points[0].yaxis.range;
    const box = plot.querySelector(".nsewdrag").getBoundingClientRect();
    const value = low + ((high - low) * (box.bottom - event.clientY)) / box.height;
    let top = 0;
    return points.find(({ y }) => (top += y) >= value);
  }

  // The figure of a plot as it is drawn, in light colours; for static/js/chart_images.js.
  window.printedFigure = (plot, width) => {
    if (!plot.matches(".js-plotly-plot")) drawNew(plot);
    const figure = figureOf(plot);
    figure.layout.xaxis.range = plot.layout.xaxis.range; // zoomed
    probe.style.colorScheme = "light";
    const traces = resolved(withChoices(plot, figure.data));
    const printed = { data: traces, layout: layout(figure, width, false) };
    probe.style.colorScheme = "";
    return printed;
  };

  // Plotly's local times are like "2017-07-06 09:52:55.1234"; long ranges need no fractions.
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

  // A new chart is drawn when it is near the window: a page may have many, of thousands of elements.
  const near = new IntersectionObserver(
    (plots) => plots.filter((plot) => plot.isIntersecting).forEach(({ target }) => drawNew(target)),
    { rootMargin: NEAR },
  );

  function drawNew(plot) {
    near.unobserve(plot);
    draw(plot, true);
  }

  function drawAll(root, keepsZoom = true) {
    recolour();
    for (const plot of root.querySelectorAll("[data-plot]")) {
      if (plot.matches(".js-plotly-plot")) {
        draw(plot, keepsZoom);
      } else {
        plot.style.minHeight = `${figureOf(plot).layout.height}px`;
        near.observe(plot);
      }
    }
  }

  drawAll(document);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("[data-plot]:not(.js-plotly-plot)").forEach(drawNew);
  });
  document.addEventListener("themechange", () => drawAll(document));
  document.addEventListener("figureschange", (event) => drawAll(event.target));
  // Not on afterSwap: until htmx settles, elements with an id have the attributes of their predecessors.
  document.addEventListener("htmx:afterSettle", (event) => drawAll(event.detail.elt));
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.shouldSwap) detail.target.querySelectorAll(".js-plotly-plot").forEach(Plotly.purge);
  });
  // Undo the zoom after a failed request.
  for (const failed of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(failed, () => drawAll(document, false));
  }
})();
