// Gives the frame of a mail the height of the mail. Mails run no scripts: the frame and its policy
// forbid them.
"use strict";

for (const frame of document.querySelectorAll(".mail-body")) {
  const fit = () => {
    const mail = frame.contentDocument;
    if (mail?.URL !== frame.src || mail.readyState === "loading") return;
    frame.style.height = "0"; // the mail may be shorter than its frame
    const { scrollHeight } = mail.documentElement;
    frame.style.height = `${scrollHeight + frame.offsetHeight - frame.clientHeight}px`;
  };
  frame.addEventListener("load", fit);
  window.addEventListener("resize", fit);
  fit();
}
