"use strict";
// The attention panel: the attention explorer for one sentence.
globalThis.heedful ??= {};

// `onClose(back)` is called when the panel closes; `back` is true if the focus returns to the word.
heedful.attention = (elements, onClose) => {
  let controller = null;
  let shown = "";
  let explorer = null;

  const showError = (message) => {
    elements.error.hidden = !message;
    elements.error.textContent = message;
  };

  const reset = () => {
    controller?.abort();
    controller = null;
    shown = "";
    explorer?.destroy();
    explorer = null;
    delete elements.panel.dataset.busy;
  };

  const close = ({ back = false } = {}) => {
    if (elements.panel.hidden) return;
    reset();
    elements.panel.hidden = true;
    onClose(back);
  };

  const show = () => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    elements.panel.hidden = false;
    elements.panel.focus({ preventScroll: true });
    elements.panel.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
  };

  const select = (index) => {
    explorer.show({ kind: "cross", focus: { side: "query", index, isPinned: true } });
    explorer.step(index);
  };

  // `request` is the body of v1/attend, `index` the target subword to show first. A sentence that is
  // already shown is not requested again.
  const open = async (request, index) => {
    const key = JSON.stringify(request);
    if (key === shown) {
      show();
      return select(index);
    }
    reset();
    showError("");
    elements.title.textContent = request.q;
    controller = new AbortController();
    const { signal } = controller;
    const onWait = (seconds) => showError(`The server is busy; trying again in ${seconds}\u202fs.`);
    elements.panel.dataset.busy = "";
    show();
    try {
      const answer = await heedful.api.attend(request, { signal, onWait });
      showError("");
      explorer = heedfulExplorer(elements.place, answer, { header: false, level: 2, mode: "average" });
      select(index);
      shown = key;
    } catch (error) {
      if (signal.aborted) return undefined;
      showError(heedful.api.explain(error));
    } finally {
      if (!signal.aborted) delete elements.panel.dataset.busy;
    }
    return undefined;
  };

  elements.close.addEventListener("click", () => close({ back: true }));

  return { open, close, isOpen: () => !elements.panel.hidden };
};
