// Light, dark, or what the system says: applied before the page is painted, kept in localStorage.
(() => {
  "use strict";
  const KEY = "ioportal-theme";
  const root = document.documentElement;

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is switched off: the system's choice stands
    }
  }

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function announce() {
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", announce);
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEY, root.dataset.theme);
    } catch {
      // It holds for this page only.
    }
    announce();
  });
})();
