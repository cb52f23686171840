// Light, dark, or the system's theme: applied before the first paint, stored in localStorage.
(() => {
  "use strict";
  const KEY = "ioportal-theme";
  const root = document.documentElement;

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is disabled: use the system's theme
    }
  }

  function isDark() {
    const selected = root.dataset.theme;
    return selected ? selected === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function announce() {
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  const theme = stored();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", announce);
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEY, root.dataset.theme);
    } catch {
      // Applies to this page only.
    }
    announce();
  });
})();
