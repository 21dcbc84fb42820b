"use strict";
// What the page says beside the translation: a line below it, complaints, and words spoken aloud.
globalThis.heedful ??= {};

heedful.notes = (at) => {
  let countdown = 0;

  const say = (text) => {
    at.said.textContent = text;
  };

  const note = (...parts) => at.note.replaceChildren(...parts);

  // A complaint stays until the next translation; `again` is what its button does, if it has one.
  const complain = (message, again) => {
    at.error.hidden = !message;
    at.error.replaceChildren(message);
    if (!message || !again) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Try again";
    button.addEventListener("click", again);
    at.error.append(" ", button);
  };

  const busy = (is) => {
    clearInterval(countdown);
    at.result.toggleAttribute("data-busy", is);
  };

  // The server is busy: say so, once aloud, and count the seconds.
  const waiting = (seconds) => {
    let left = seconds;
    const tell = () => note(`The server is busy; trying again in ${Math.max(left, 0)}\u202fs.`);
    clearInterval(countdown);
    countdown = setInterval(() => {
      left -= 1;
      tell();
    }, 1000);
    tell();
    say(`The server is busy; trying again in ${seconds} seconds.`);
  };

  return { say, note, complain, busy, waiting };
};
