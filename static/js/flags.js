// Keys of the inbox, and what a page cannot do without a script: choose all, copy. All of it can be
// done without: with Tab, Space and Enter.
"use strict";

(() => {
  const PLACE = "place among flags";
  const rows = () => [...document.querySelectorAll("[data-flag]")];
  const here = () => document.activeElement.closest("[data-flag]");
  const boxes = () => [...document.querySelectorAll("[data-flag] input[name='flag']")];

  function focus(row) {
    row?.querySelector("[data-open]").focus();
  }

  function go(step) {
    const all = rows();
    const at = all.indexOf(here());
    focus(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step]);
  }

  function acknowledge() {
    const box = here()?.querySelector("input[name='flag']");
    if (box && !boxes().some((one) => one.checked)) box.checked = true;
    const button = document.querySelector("[data-acknowledge]");
    if (!boxes().some((one) => one.checked)) return;
    sessionStorage.setItem(PLACE, rows().indexOf(here()));
    button.form.requestSubmit(button);
  }

  // The page that follows goes on where somebody was.
  function goOn() {
    const place = sessionStorage.getItem(PLACE);
    sessionStorage.removeItem(PLACE);
    if (place !== null) focus(rows()[place]);
  }

  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    x: () => {
      here()?.querySelector("input[name='flag']")?.click();
      here()?.scrollIntoView({ block: "nearest" });
    },
    e: acknowledge,
    "?": () => {
      const keys = document.querySelector("[data-keys]");
      keys.open = !keys.open;
      keys.scrollIntoView({ block: "nearest" });
    },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !document.querySelector("[data-keys]")) return;
    const typesInto = "input:not([type='checkbox']), select, textarea, [contenteditable]";
    if (event.target.closest(typesInto) || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-choose-all]")) {
      for (const box of boxes()) box.checked = target.checked;
    }
  });

  document.addEventListener("click", async ({ target }) => {
    if (!target.matches("[data-copy]")) return;
    const ticket = document.querySelector("[data-ticket]");
    ticket.select();
    // Browsers let a page write to the clipboard on secure connections only: else it is selected.
    if (!navigator.clipboard) return;
    await navigator.clipboard.writeText(ticket.value);
    target.textContent = "Copied";
  });

  function show() {
    for (const hidden of document.querySelectorAll("[data-choose-all], [data-copy]")) {
      hidden.hidden = false;
    }
  }

  document.addEventListener("htmx:afterSettle", show);
  show();
  goOn();
})();
