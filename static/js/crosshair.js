// Shows the time under the pointer in all other charts of the page.
"use strict";

(() => {
  const milliseconds = (local) => Date.parse(`${String(local).replace(" ", "T")}Z`);

  function axisOf(plot) {
    const drawn = plot.querySelector(".nsewdrag");
    if (plot.layout?.xaxis.type !== "date" || !drawn) return null;
    const [start, end] = plot.layout.xaxis.range.map(milliseconds);
    return { box: drawn.getBoundingClientRect(), start, end };
  }

  function lineOf(plot) {
    const existing = plot.querySelector(":scope > .crosshair");
    if (existing) return existing;
    const line = document.createElement("div");
    line.className = "crosshair";
    plot.append(line);
    return line;
  }

  function show(plot, time) {
    const axis = axisOf(plot);
    const line = lineOf(plot);
    line.hidden = !axis || time < axis.start || time > axis.end;
    if (line.hidden) return;
    const { left, top } = plot.getBoundingClientRect();
    const share = (time - axis.start) / (axis.end - axis.start);
    line.style.left = `${axis.box.left - left + share * axis.box.width}px`;
    line.style.top = `${axis.box.top - top}px`;
    line.style.height = `${axis.box.height}px`;
  }

  document.addEventListener("pointermove", ({ clientX, target }) => {
    const pointed = target.closest?.(".nsewdrag") && target.closest("[data-plot]");
    const axis = pointed && axisOf(pointed);
    if (!axis) {
      for (const line of document.querySelectorAll(".crosshair")) line.hidden = true;
      return;
    }
    const time = axis.start + ((axis.end - axis.start) * (clientX - axis.box.left)) / axis.box.width;
    for (const plot of document.querySelectorAll("[data-plot]")) {
      if (plot === pointed) lineOf(plot).hidden = true; // Plotly draws its own
      else show(plot, time);
    }
  });
})();
