// What htmx asks for and does not get: the page stays as it was and says so.
"use strict";

(() => {
  function tell(words) {
    const failure = document.getElementById("failure");
    failure.textContent = words;
    failure.hidden = !words;
  }

  // Addresses say what was filled in.
  document.addEventListener("htmx:configRequest", ({ detail: { formData, verb } }) => {
    if (verb !== "get") return;
    for (const name of new Set(formData.keys())) {
      if (formData.getAll(name).every((value) => value === "")) formData.delete(name);
    }
  });
  document.addEventListener("htmx:beforeRequest", () => tell(""));
  document.addEventListener("htmx:sendError", () => {
    tell("The server cannot be reached, so the page is as it was. Check the connection and try again.");
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { status, responseText } = event.detail.xhr;
    // The portal explains its own 503 in plain text; a proxy sends a page.
    if (status === 503 && event.detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain")) {
      tell(`${responseText} The page shows its last contents.`);
      return;
    }
    tell(`The server answered with error ${status}, so the page is as it was. Try again, or reload it.`);
  });

  // Fields stay while the answer to their form is swapped in around them: they learn its verdict.
  document.addEventListener("htmx:afterSettle", () => {
    for (const field of document.querySelectorAll("form .field")) {
      const isRefused = field.querySelector(".error") !== null;
      field.querySelector("input, select, textarea").setAttribute("aria-invalid", isRefused);
    }
  });
})();
