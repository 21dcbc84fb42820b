"use strict";
// Where a word looked: the explorer of attention, for one sentence.
globalThis.heedful ??= {};

// `closed` is called when the panel closes, so that the focus can go back to where it was.
heedful.looked = (at, closed) => {
  let asking = null;
  let shown = "";
  let explorer = null;

  const say = (message) => {
    at.error.hidden = !message;
    at.error.textContent = message;
  };

  const forget = () => {
    asking?.abort();
    asking = null;
    shown = "";
    explorer?.destroy();
    explorer = null;
    delete at.panel.dataset.busy;
  };

  const close = ({ back = false } = {}) => {
    if (at.panel.hidden) return;
    forget();
    at.panel.hidden = true;
    closed(back);
  };

  const show = () => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    at.panel.hidden = false;
    at.panel.focus({ preventScroll: true });
    at.panel.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
  };

  const point = (index) => {
    explorer.show({ kind: "cross", focus: { side: "query", index, isPinned: true } });
    explorer.step(index);
  };

  // `request` is the body of v1/attend, `index` the piece of the translation to begin with. A
  // sentence that is shown already is not asked for again.
  const open = async (request, index) => {
    const key = JSON.stringify(request);
    if (key === shown) {
      show();
      return point(index);
    }
    forget();
    say("");
    at.title.textContent = request.q;
    asking = new AbortController();
    const { signal } = asking;
    const waiting = (seconds) => say(`The server is busy; trying again in ${seconds}\u202fs.`);
    at.panel.dataset.busy = "";
    show();
    try {
      const answer = await heedful.talk.attend(request, { signal, waiting });
      say("");
      explorer = heedfulExplorer(at.place, answer, { header: false, level: 2, mode: "average" });
      point(index);
      shown = key;
    } catch (error) {
      if (signal.aborted) return undefined;
      const known = error instanceof heedful.talk.Refusal;
      if (!known) console.error(error);
      say(known ? error.message : "This answer cannot be shown.");
    } finally {
      if (!signal.aborted) delete at.panel.dataset.busy;
    }
    return undefined;
  };

  at.close.addEventListener("click", () => close({ back: true }));

  return { open, close, isOpen: () => !at.panel.hidden };
};
