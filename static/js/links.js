// Keeps addresses short: parameters that say nothing are not sent.
"use strict";

document.addEventListener("htmx:configRequest", (event) => {
  const parameters = event.detail.formData;
  for (const name of [...new Set(parameters.keys())]) {
    const values = parameters.getAll(name).filter((value) => value !== "");
    parameters.delete(name);
    values.forEach((value) => parameters.append(name, value));
  }
});
