// Messages for failed htmx requests; the page stays unchanged.
"use strict";

(() => {
  function showFailure(text) {
    const failure = document.getElementById("failure");
    failure.textContent = text;
    failure.hidden = !text;
  }

  // URLs have filled-in fields only.
  document.addEventListener("htmx:configRequest", ({ detail: { formData, verb } }) => {
    if (verb !== "get") return;
    for (const name of new Set(formData.keys())) {
      if (formData.getAll(name).every((value) => value === "")) formData.delete(name);
    }
  });
  document.addEventListener("htmx:beforeRequest", () => showFailure(""));
  document.addEventListener("htmx:sendError", () => {
    showFailure("The server cannot be reached; the page is unchanged. Check the connection and try again.");
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { status, responseText } = event.detail.xhr;
    // The portal's own 503 is plain text; a proxy sends HTML.
    if (status === 503 && event.detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain")) {
      showFailure(`${responseText} The page shows its last contents.`);
      return;
    }
    showFailure(`Server error ${status}; the page is unchanged. Try again, or reload the page.`);
  });

  // A part of the page with an address of its own does not name the page.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const { pathname } = new URL(detail.xhr.responseURL);
    if (pathname !== location.pathname) detail.ignoreTitle = true;
  });

  // Fields are not replaced by the response to their form, so their validity is updated here.
  document.addEventListener("htmx:afterSettle", () => {
    for (const field of document.querySelectorAll("form .field")) {
      const isInvalid = field.querySelector(".error") !== null;
      field.querySelector("input, select, textarea").setAttribute("aria-invalid", isInvalid);
    }
  });
})();
