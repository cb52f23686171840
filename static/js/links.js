// Copies links; without a clipboard, the address bar gets them.
"use strict";

(() => {
  const show = () => document.querySelectorAll("[data-copy-link]").forEach((button) => (button.hidden = false));

  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copy-link]");
    if (!button) return;
    const address = new URL(button.dataset.copyLink, location.href);
    try {
      await navigator.clipboard.writeText(address.href);
      button.textContent = "Copied";
    } catch {
      history.replaceState(history.state, "", address);
      button.textContent = "In the address bar";
    }
  });
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("htmx:afterSettle", show);
})();
