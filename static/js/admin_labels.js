// Names the search fields of forms after their labels, which Select2 does not.
"use strict";

addEventListener("load", () => {
  globalThis.django?.jQuery?.(() => {
    for (const select of document.querySelectorAll("select.admin-autocomplete")) {
      const label = select.labels[0]?.textContent.replace(/:\s*$/, "");
      const fields = select.nextElementSibling?.querySelectorAll(
        "[role=combobox], [role=textbox]",
      );
      for (const field of fields ?? []) field.setAttribute("aria-label", label ?? select.name);
    }
  });
});
