// Keyboard shortcuts of the list of cases, "select all" and "copy". Without scripts, use Tab, Space
// and Enter.
"use strict";

(() => {
  const PLACE = "row of the case list";
  const rows = () => [...document.querySelectorAll("[data-case]")];
  const here = () => document.activeElement.closest("[data-case]");
  const boxes = () => [...document.querySelectorAll("[data-case] input[name='case']")];

  function focus(row) {
    row?.querySelector("[data-open]").focus();
  }

  function go(step) {
    const all = rows();
    const at = all.indexOf(here());
    focus(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step]);
  }

  function acknowledge() {
    const box = here()?.querySelector("input[name='case']");
    if (box && !boxes().some((other) => other.checked)) box.checked = true;
    const button = document.querySelector("[data-acknowledge]");
    if (!boxes().some((other) => other.checked)) return;
    sessionStorage.setItem(PLACE, rows().indexOf(here()));
    button.form.requestSubmit(button);
  }

  // The next page focuses the same row.
  function restoreFocus() {
    const place = sessionStorage.getItem(PLACE);
    sessionStorage.removeItem(PLACE);
    if (place !== null) focus(rows()[place]);
  }

  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    x: () => {
      here()?.querySelector("input[name='case']")?.click();
      here()?.scrollIntoView({ block: "nearest" });
    },
    e: acknowledge,
    "?": () => {
      const shortcuts = document.querySelector("[data-shortcuts]");
      shortcuts.open = !shortcuts.open;
      shortcuts.scrollIntoView({ block: "nearest" });
    },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !document.querySelector("[data-shortcuts]")) return;
    const typesInto = "input:not([type='checkbox']), select, textarea, [contenteditable]";
    if (event.target.closest(typesInto) || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-select-all]")) {
      for (const box of boxes()) box.checked = target.checked;
    }
  });

  document.addEventListener("click", async ({ target }) => {
    if (!target.matches("[data-copy]")) return;
    const ticket = document.querySelector("[data-ticket]");
    ticket.select();
    // Without a secure connection there is no clipboard; the text stays selected.
    if (!navigator.clipboard) return;
    await navigator.clipboard.writeText(ticket.value);
    target.textContent = "Copied";
  });

  function show() {
    for (const hidden of document.querySelectorAll("[data-select-all], [data-copy]")) {
      hidden.hidden = false;
    }
  }

  document.addEventListener("htmx:afterSettle", show);
  show();
  restoreFocus();
})();
