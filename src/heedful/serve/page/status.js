"use strict";
// Status: the line below the translation, error messages, and announcements for screen readers.
globalThis.heedful ??= {};

heedful.status = (elements) => {
  let countdown = 0;

  const announce = (text) => {
    elements.announcement.textContent = text;
  };

  const note = (...parts) => elements.note.replaceChildren(...parts);

  // An error stays until the next translation. With `retry` it has a button that calls it.
  const showError = (message, retry) => {
    elements.error.hidden = !message;
    elements.error.replaceChildren(message);
    if (!message || !retry) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Try again";
    button.addEventListener("click", retry);
    elements.error.append(" ", button);
  };

  const setBusy = (isBusy) => {
    clearInterval(countdown);
    elements.result.toggleAttribute("data-busy", isBusy);
  };

  // The server is busy: announce it once and count the seconds down in the line.
  const countDown = (seconds) => {
    let left = seconds;
    const showSeconds = () => note(`The server is busy; trying again in ${Math.max(left, 0)}\u202fs.`);
    clearInterval(countdown);
    countdown = setInterval(() => {
      left -= 1;
      showSeconds();
    }, 1000);
    showSeconds();
    announce(`The server is busy; trying again in ${seconds} seconds.`);
  };

  // The button shows for a moment whether its text was copied.
  const showCopied = (button, label, done) => {
    button.textContent = done ? "Copied" : "Select and copy by hand";
    announce(done ? "Copied." : "The browser does not let this page copy text.");
    setTimeout(() => {
      button.textContent = label;
    }, 1600);
  };

  return { announce, note, showError, showCopied, setBusy, countDown };
};
