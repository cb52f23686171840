// Gives the frame of a mail the height of the mail. Mails run no scripts: the frame and its policy
// forbid them.
"use strict";

for (const frame of document.querySelectorAll(".mail-body")) {
  const fit = () => {
    if (frame.contentDocument?.URL !== frame.src) return; // not loaded yet
    frame.style.height = "0"; // the mail may be shorter than its frame
    const { scrollHeight } = frame.contentDocument.documentElement;
    frame.style.height = `${scrollHeight + frame.offsetHeight - frame.clientHeight}px`;
  };
  frame.addEventListener("load", fit);
  window.addEventListener("resize", fit);
  fit();
}
