// Sliders next to number fields, on a logarithmic scale. Without JavaScript the fields are enough.
"use strict";

(() => {
  const STEPS = 400;

  function prepare(slider) {
    const field = document.getElementById(slider.dataset.number);
    const [low, high] = [slider.dataset.least, slider.dataset.greatest].map((x) => Math.log(x));
    slider.min = 0;
    slider.max = STEPS;
    const follow = () => {
      const share = (Math.log(field.value) - low) / (high - low);
      slider.value = Math.round(STEPS * Math.min(Math.max(share, 0), 1));
    };
    slider.addEventListener("input", () => {
      const value = Math.exp(low + ((high - low) * slider.value) / STEPS);
      field.value = Number(value.toPrecision(3));
    });
    field.addEventListener("input", follow);
    follow();
    slider.hidden = false;
  }

  document.querySelectorAll("input[type=range][data-number]").forEach(prepare);
})();
