// Refreshes the sections of the overview while the page is visible, and updates existing charts in
// place.
"use strict";

(() => {
  const known = new Map(); // URL to ETag
  let timer = 0;
  let updated = clock();

  function showStatus(text) {
    const status = document.querySelector("[data-live-status]");
    if (status) status.textContent = text;
  }

  function clock() {
    return new Date().toLocaleTimeString([], { hour12: false });
  }

  // Updates equal parts in place; replaces everything if the charts differ.
  function update(section, fresh) {
    const plots = (part) => [...part.querySelectorAll("[data-plot]")].map((plot) => plot.id).join();
    if (plots(section) !== plots(fresh)) {
      section.querySelectorAll(".js-plotly-plot").forEach(Plotly.purge);
      section.replaceChildren(...fresh.childNodes);
    } else {
      for (const script of fresh.querySelectorAll("script[type='application/json']")) {
        document.getElementById(script.id).textContent = script.textContent;
      }
      for (const part of fresh.querySelectorAll("[data-part]")) {
        section.querySelector(`[data-part='${part.dataset.part}']`)?.replaceChildren(...part.childNodes);
      }
    }
    section.dispatchEvent(new CustomEvent("figureschange", { bubbles: true }));
  }

  async function refresh(section) {
    const address = section.dataset.live;
    const headers = known.has(address) ? { "If-None-Match": known.get(address) } : {};
    const response = await fetch(address, { headers, redirect: "error" });
    if (response.status === 304) return;
    if (response.status === 503) throw new Error("the database is not available");
    if (!response.ok) throw new Error(`error ${response.status}`);
    const text = await response.text();
    if (!section.isConnected) return; // another range was selected meanwhile
    known.set(address, response.headers.get("ETag"));
    update(section, new DOMParser().parseFromString(text, "text/html").body.firstElementChild);
  }

  async function refreshAll() {
    try {
      await Promise.all([...document.querySelectorAll("[data-live]")].map(refresh));
      updated = clock();
      showStatus(`updated ${updated}`);
    } catch (error) {
      showStatus(`stale since ${updated}: ${error.message}`);
    }
    schedule();
  }

  function schedule() {
    clearTimeout(timer);
    const status = document.querySelector("[data-live-status]");
    if (status && !document.hidden) timer = setTimeout(refreshAll, 1000 * status.dataset.liveEvery);
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden && document.querySelector("[data-live-status]")) refreshAll();
  });
  document.addEventListener("htmx:afterSettle", schedule);
  schedule();
})();
