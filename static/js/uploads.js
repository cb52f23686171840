// Uploads of files of any size: their names first, then their content in parts, with progress.
"use strict";

(() => {
  const form = document.querySelector("[data-upload]");
  const state = form.querySelector("[data-upload-state]");
  const progress = form.querySelector("progress");
  const button = form.querySelector("button[type=submit]");

  class Refused extends Error {}

  async function post(url, body) {
    const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
    const headers = { "X-CSRFToken": token, Accept: "application/json, text/plain" };
    const response = await fetch(url, { method: "POST", body, headers });
    const type = response.headers.get("Content-Type") ?? "";
    const answer = type.startsWith("application/json") ? await response.json() : {};
    if (response.ok) return answer;
    const reasons = type.startsWith("text/plain")
      ? await response.text()
      : Object.values(answer.errors ?? {}).flat().join(" ");
    throw new Refused(reasons || `Server error ${response.status}. Try again.`);
  }

  async function sendPart(url, part) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await post(url, part);
      } catch (error) {
        if (error instanceof Refused || attempt === 5) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1000 * attempt));
      }
    }
  }

  async function upload(files) {
    const data = new FormData(form);
    data.delete("content");
    data.set("declared", JSON.stringify(files.map((file) => [file.name, file.size])));
    const target = await post(form.action, data);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let sent = 0;
    for (const [index, file] of files.entries()) {
      for (let start = 0; start < file.size; start += target.part_bytes) {
        const part = file.slice(start, start + target.part_bytes, "application/octet-stream");
        await sendPart(`${target.files[index]}${start / target.part_bytes}/`, part);
        sent += part.size;
        progress.value = sent / total;
        state.textContent = `${file.name}: ${Math.floor((100 * sent) / total)} % sent`;
      }
    }
    const { url } = await post(target.complete, null);
    window.location.assign(url);
  }

  form.addEventListener("submit", async (event) => {
    const files = [...form.querySelector("[name=content]").files];
    if (!files.length) return;
    event.preventDefault();
    button.disabled = true;
    progress.hidden = false;
    try {
      await upload(files);
    } catch (error) {
      state.textContent = error instanceof Refused ? error.message : "The connection failed. Try again.";
      button.disabled = false;
      progress.hidden = true;
    }
  });
})();
