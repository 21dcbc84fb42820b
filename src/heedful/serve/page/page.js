"use strict";
// The page: what is typed is asked for, and what is answered is shown.
(() => {
  const { carry, origins, talk, words } = heedful;
  const id = (name) => document.getElementById(name);
  const source = id("source");
  const result = id("result");
  const SAMPLES = {
    en: "The animal didn\u2019t cross the street because it was too tired.",
    de: "Das Tier ging nicht \u00fcber die Stra\u00dfe, weil es zu m\u00fcde war.",
    fr: "L\u2019animal n\u2019a pas travers\u00e9 la rue parce qu\u2019il \u00e9tait trop fatigu\u00e9.",
  };
  const MOST_BEST = 4;
  const DOUBT = 80;

  let choices = null;
  let asking = null;
  let timer = 0;
  let limit = Infinity;
  let growing = new Map();
  let frame = 0;
  let summary = "";
  let detectedLast = "";
  let fileName = "";

  const { say, note, complain, busy, waiting } = heedful.notes({
    said: id("said"),
    note: id("note"),
    error: id("error"),
    result,
  });

  // --- words ---------------------------------------------------------------------------------

  const rest = () => note(summary);

  const mark = (spans) => origins.mark(id("mirror"), source.value, spans);

  const focused = (sentence, word, isFocus) => {
    if (!word) {
      mark([]);
      rest();
      return;
    }
    if (isFocus) beam.pick(sentence.index);
    note(...origins.describe(sentence, word));
    mark(origins.inText(source.value, view.sentences(), sentence, word));
  };

  const chosen = (sentence, word) => {
    if (!choices.every("attention") || !sentence.source) return;
    view.press(word);
    const shown = sentence.shown === sentence.best ? {} : { target_text: sentence.shown.text };
    looked.open({ ...choices.request(), q: sentence.source, ...shown }, word.tokens[0] ?? 0);
  };

  const view = heedful.translation(id("translation"), { focused, chosen });

  const beam = heedful.beam(
    {
      alternatives: id("alternatives"),
      alternativesOf: id("alternatives-of"),
      alternativesList: id("alternatives-list"),
      follow: id("follow"),
      followOf: id("follow-of"),
      followList: id("follow-list"),
      step: id("step"),
      stepName: id("step-name"),
    },
    (index, hypothesis) => {
      looked.close();
      view.show(index, hypothesis);
      speak();
    },
  );

  const looked = heedful.looked(
    {
      panel: id("looked"),
      title: id("looked-title"),
      error: id("looked-error"),
      place: id("explorer"),
      close: id("looked-close"),
    },
    (back) => {
      view.press(null);
      if (back) view.focus();
    },
  );

  // --- asking --------------------------------------------------------------------------------

  const speak = () => {
    id("spoken").textContent = view.text();
  };

  const sayDetected = (detected) => {
    detectedLast = detected?.language ?? "";
    const name = detected && heedful.choices.language(detected.language);
    const doubt = detected && detected.confidence < DOUBT;
    id("detected").textContent = detected
      ? `${doubt ? "Perhaps" : "Detected:"} ${name}, ${Math.round(detected.confidence)}\u202f%`
      : "";
  };

  const grow = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    for (const [index, text] of growing) view.grow(index, text);
    if (growing.size) id("placeholder").hidden = true;
    growing.clear();
    view.lay(source.value);
    beam.draw();
  };

  const told = (event) => {
    if (event.event === "step") {
      growing.set(event.sentence, event.text);
      beam.step(event);
      frame ||= requestAnimationFrame(grow);
    } else if (event.event === "sentence") {
      growing.delete(event.sentence);
      id("placeholder").hidden = true;
      view.settle(event.sentence, event);
      beam.settle(event);
    } else if (event.event === "end") {
      grow();
      id("placeholder").hidden = true;
      view.finish(event.text);
      beam.finish();
      sayDetected(event.detected);
    }
  };

  const stop = () => {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    frame = 0;
    growing = new Map();
    asking?.abort();
    asking = null;
    busy(false);
  };

  const empty = () => {
    view.clear();
    beam.clear();
    sayDetected(null);
    for (const name of ["takes", "legend"]) id(name).hidden = true;
    id("placeholder").hidden = Boolean(source.value.trim());
    id("spoken").textContent = "";
    summary = "";
    rest();
  };

  // What had begun to grow stays; what belongs to an earlier text goes.
  const fail = (message) => {
    if (!view.text()) empty();
    complain(message, translate);
    rest();
  };

  const conclude = (model, started) => {
    const sentences = view.sentences();
    const known = (word) => word.probability !== null;
    id("legend").hidden = !sentences.some((one) => one.words.some(known));
    id("keys").hidden = !choices.every("attention");
    id("takes").hidden = !view.text();
    summary = [
      choices.state.from === "auto" && model,
      sentences.length === 1 && `score ${words.signed(sentences[0].best.score)}`,
      `${((performance.now() - started) / 1000).toFixed(1)}\u202fs`,
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
    rest();
    speak();
  };

  const translate = async () => {
    stop();
    looked.close();
    complain("");
    const text = source.value;
    const length = [...text].length;
    if (!choices || !text.trim()) return empty();
    if (length > limit) {
      const most = limit.toLocaleString("en");
      view.begin();
      return fail(`The text has ${length.toLocaleString("en")} characters; this server takes ${most}.`);
    }
    asking = new AbortController();
    const { signal } = asking;
    const started = performance.now();
    const request = {
      ...choices.request(),
      q: text.toWellFormed?.() ?? text,
      n_best: Math.min(choices.beam(), MOST_BEST),
      probabilities: true,
      alignments: choices.every("alignments"),
    };
    let by = "";
    const hear = (event) => {
      told(event);
      by = event.model ?? by;
    };
    summary = "";
    view.begin();
    beam.begin();
    busy(true);
    note();
    try {
      await talk.stream(request, { signal, waiting, told: hear });
      if (!signal.aborted) conclude(by, started);
    } catch (error) {
      if (signal.aborted) return undefined;
      const known = error instanceof talk.Refusal;
      if (!known) console.error(error);
      fail(known ? error.message : "This answer cannot be shown.");
      if (error.status === 403) id("key-field").hidden = false;
    } finally {
      if (!signal.aborted) busy(false);
    }
    return undefined;
  };

  // --- typing --------------------------------------------------------------------------------

  const size = (length) => (length < 280 ? "short" : length < 1200 ? "middle" : "long");

  const typed = () => {
    const length = [...source.value].length;
    mark([]);
    document.querySelector(".panes").dataset.size = size(length);
    const count = id("count");
    const most = Number.isFinite(limit) ? ` / ${limit.toLocaleString("en")}` : "";
    count.textContent = length ? `${length.toLocaleString("en")}${most}` : "";
    count.toggleAttribute("data-over", length > limit);
    id("clear").hidden = !length;
    offer();
  };

  // Fonts, hyphens and voices follow the language.
  const speakers = () => {
    const { from, into } = choices.state;
    source.lang = from === "auto" ? "" : from;
    for (const name of ["translation", "spoken", "alternatives-list", "follow-list"]) {
      id(name).lang = into;
    }
  };

  const offer = () => {
    const sample = choices && SAMPLES[choices.state.from === "auto" ? "en" : choices.state.from];
    id("sample").hidden = Boolean(source.value) || !sample;
    id("open").hidden = Boolean(source.value) || !choices;
  };

  const soon = () => {
    carry.drop();
    typed();
    clearTimeout(timer);
    asking?.abort();
    if (!source.value.trim()) return translate();
    busy(true);
    timer = setTimeout(translate, 300 + Math.min(source.value.length / 10, 900));
    return undefined;
  };

  const put = (text) => {
    fileName = "";
    carry.drop();
    source.value = text;
    typed();
    translate();
    source.focus();
  };

  const copied = (button, label, done) => {
    button.textContent = done ? "Copied" : "Select and copy by hand";
    say(done ? "Copied." : "The browser does not let this page copy.");
    setTimeout(() => {
      button.textContent = label;
    }, 1600);
  };

  // The clipboard is there on secure pages only; elsewhere the old command does.
  const copy = async (button, label, text) => {
    try {
      await navigator.clipboard.writeText(text);
      copied(button, label, true);
    } catch {
      const field = document.createElement("textarea");
      field.className = "aside";
      field.value = text;
      document.body.append(field);
      field.select();
      copied(button, label, document.execCommand("copy"));
      field.remove();
      button.focus();
    }
  };

  // --- files and links -----------------------------------------------------------------------

  const translatedName = (ending) =>
    `${fileName.replace(/\.[^.]*$/, "") || "translation"}.${choices.state.into}.${ending}`;

  const open = async (file) => {
    if (!file) return;
    complain("");
    try {
      if (carry.isPage(file)) {
        note(`Translating ${file.name} \u2026`);
        say(`Translating ${file.name}.`);
        fileName = file.name;
        carry.fetchFrom(await talk.file(file, choices.request()), translatedName("html"));
        note("The page is translated; your browser saves it.");
        say("The page is translated; your browser saves it.");
      } else {
        put(await carry.read(file, limit));
        fileName = file.name;
      }
    } catch (error) {
      if (!(error instanceof talk.Refusal)) console.error(error);
      complain(error.message);
      rest();
    }
  };

  const share = () => {
    const address = carry.link(choices.state, source.value.toWellFormed?.() ?? source.value);
    history.replaceState(null, "", address);
    copy(id("link"), "Copy link", address);
  };

  // Take text and languages from the address of the page, if it has any.
  const arrive = () => {
    const carried = carry.carried();
    if (!carried) return;
    const { from, into, text } = carried;
    const known = choices.take(from ?? choices.state.from, into ?? choices.state.into);
    speakers();
    source.value = text;
    typed();
    translate();
    if (!known) complain(`The link asks for ${from} into ${into}, which this server does not have.`);
  };

  const toggle = () => {
    const panel = id("settings");
    panel.hidden = !panel.hidden;
    id("settings-toggle").setAttribute("aria-expanded", String(!panel.hidden));
  };

  source.addEventListener("input", (event) => (event.isComposing ? typed() : soon()));
  source.addEventListener("compositionend", soon);
  id("clear").addEventListener("click", () => put(""));
  id("sample").addEventListener("click", () =>
    put(SAMPLES[choices.state.from === "auto" ? "en" : choices.state.from]),
  );
  id("copy").addEventListener("click", () => copy(id("copy"), "Copy", view.text()));
  id("save").addEventListener("click", () => carry.save(view.text(), translatedName("txt")));
  id("link").addEventListener("click", share);
  id("open").addEventListener("click", () => id("file").click());
  id("file").addEventListener("change", () => {
    open(id("file").files[0]);
    id("file").value = "";
  });
  addEventListener("hashchange", () => choices && arrive());
  id("settings-toggle").addEventListener("click", toggle);
  id("key").addEventListener("change", () => {
    talk.key = id("key").value;
    translate();
  });
  id("swap").addEventListener("click", () => {
    const turned = view.text();
    choices.swap(detectedLast);
    if (turned) put(turned);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      translate();
    } else if (event.key === "Escape" && looked.isOpen() && !event.defaultPrevented) {
      looked.close({ back: true });
    }
  });

  // --- beginning -----------------------------------------------------------------------------

  const begin = async () => {
    complain("");
    try {
      const [served, settings] = await Promise.all([talk.models(), talk.settings().catch(() => ({}))]);
      if (!served.models.length) return complain("This server has no model.");
      if (settings.charLimit > 0) limit = settings.charLimit;
      id("key-field").hidden = !(settings.keyRequired || settings.apiKeys);
      choices = heedful.choices(
        served,
        {
          from: id("from"),
          into: id("into"),
          model: id("model"),
          beam: id("beam"),
          penalty: id("penalty"),
          strength: id("strength"),
          strengthField: id("strength-field"),
          defaults: id("defaults"),
          about: id("about"),
          swap: id("swap"),
        },
        () => {
          speakers();
          offer();
          translate();
        },
      );
      speakers();
      typed();
      if (carry.carried()) arrive();
      else if (source.value.trim()) translate();
    } catch (error) {
      if (!(error instanceof talk.Refusal)) console.error(error);
      complain(error.message, begin);
    }
    return undefined;
  };

  typed();
  begin();
})();
