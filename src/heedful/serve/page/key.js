"use strict";
// The API key: a form above the text, open until the server has accepted a key.
globalThis.heedful ??= {};

// `check` sends a request with the key; `onAccepted` is called when the server has answered it.
heedful.key = (elements, { check, onAccepted }) => {
  const { api } = heedful;
  const NEEDED = "This server translates only with a key. Ask its operator for one.";
  const REFUSED = "The server does not accept this key.";

  let isMissing = false;

  const toggle = (isOpen) => {
    elements.form.hidden = !isOpen;
    elements.change.setAttribute("aria-expanded", String(isOpen));
  };

  const open = (reason) => {
    elements.reason.textContent = reason;
    toggle(true);
  };

  // The server needs a key, or a key other than the one that it received.
  const request = () => {
    isMissing = true;
    elements.change.hidden = false;
    open(api.key ? REFUSED : NEEDED);
  };

  const submit = async (event) => {
    // The form is for the Enter key and for password managers: the browser sends nothing.
    event.preventDefault();
    const before = api.key;
    api.key = elements.field.value.trim();
    if (!api.key) return elements.field.focus();
    elements.send.disabled = true;
    try {
      await check();
      isMissing = false;
      toggle(false);
      onAccepted();
    } catch (error) {
      if (!(error instanceof api.RequestError)) console.error(error);
      if (!error.isAboutKey) open(error.message);
      if (!isMissing) api.key = before;
      elements.field.select();
    } finally {
      elements.send.disabled = false;
    }
    return undefined;
  };

  api.onKeyRefused = request;
  elements.form.addEventListener("submit", submit);
  elements.change.addEventListener("click", () => {
    if (!elements.form.hidden && !isMissing) return toggle(false);
    if (!isMissing) open(NEEDED);
    return elements.field.select();
  });

  return { request, isMissing: () => isMissing, focus: () => elements.field.focus() };
};
