"use strict";
// The page: sends what the user types to the API and shows the answer.
(() => {
  const { alignment, api, transfer, words } = heedful;
  const id = (name) => document.getElementById(name);
  // The elements with some ids, separated by spaces, by their ids in camel case.
  const byName = (ids) => {
    const camelCase = (name) => name.replace(/-(.)/gu, (_, letter) => letter.toUpperCase());
    return Object.fromEntries(ids.split(" ").map((name) => [camelCase(name), id(name)]));
  };
  const source = id("source");
  const SAMPLES = {
    en: "The animal didn\u2019t cross the street because it was too tired.",
    de: "Das Tier ging nicht \u00fcber die Stra\u00dfe, weil es zu m\u00fcde war.",
    fr: "L\u2019animal n\u2019a pas travers\u00e9 la rue parce qu\u2019il \u00e9tait trop fatigu\u00e9.",
  };
  const MAX_ALTERNATIVES = 4;
  // Below this confidence, in percent, the detected language is shown with "Perhaps".
  const UNSURE_BELOW = 80;

  let settings = null;
  let controller = null;
  let timer = 0;
  let limit = Infinity;
  let alternativesLimit = Infinity;
  let partialTexts = new Map();
  let frame = 0;
  let summary = "";
  let lastDetected = "";
  let fileName = "";

  const { announce, note, showError, showCopied, setBusy, countDown } = heedful.status(
    byName("announcement note error result"),
  );

  // --- words ---------------------------------------------------------------------------------

  const showSummary = () => note(summary);

  const markSource = (spans) => alignment.mark(id("mirror"), source.value, spans);

  const describeWord = (sentence, word, isFocus) => {
    if (!word) {
      markSource([]);
      showSummary();
      return;
    }
    if (isFocus) beam.pick(sentence.index);
    note(...alignment.describe(sentence, word));
    markSource(alignment.spansInText(source.value, view.sentences(), sentence, word));
  };

  const openAttention = (sentence, word) => {
    if (!settings.everyModelHas("attention") || !sentence.source) return;
    view.press(word);
    const shown = sentence.shown === sentence.best ? {} : { target_text: sentence.shown.text };
    attention.open({ ...settings.request(), q: sentence.source, ...shown }, word.tokens[0] ?? 0);
  };

  const view = heedful.translation(id("translation"), {
    onFocus: describeWord,
    onChoose: openAttention,
  });

  const beam = heedful.beam(
    byName("alternatives alternatives-of alternatives-list follow follow-of follow-list step step-name"),
    (index, hypothesis) => {
      attention.close();
      view.show(index, hypothesis);
      announceTranslation();
    },
  );

  const attention = heedful.attention(
    {
      panel: id("attention"),
      title: id("attention-title"),
      error: id("attention-error"),
      place: id("explorer"),
      close: id("attention-close"),
    },
    (back) => {
      view.press(null);
      if (back) view.focus();
    },
  );

  const key = heedful.key(
    {
      form: id("key-form"),
      reason: id("key-reason"),
      field: id("key"),
      send: id("key-send"),
      change: id("key-change"),
    },
    {
      check: () => api.checkKey(settings.request()),
      onAccepted: () => {
        translate();
        source.focus();
      },
    },
  );

  // --- translating --------------------------------------------------------------------------------

  const announceTranslation = () => {
    id("spoken").textContent = view.text();
  };

  const showDetected = (detected) => {
    lastDetected = detected?.language ?? "";
    const name = detected && heedful.settings.language(detected.language);
    const doubt = detected && detected.confidence < UNSURE_BELOW;
    id("detected").textContent = detected
      ? `${doubt ? "Perhaps" : "Detected:"} ${name}, ${Math.round(detected.confidence)}\u202f%`
      : "";
  };

  const drawPartial = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    for (const [index, text] of partialTexts) view.grow(index, text);
    if (partialTexts.size) id("placeholder").hidden = true;
    partialTexts.clear();
    view.applySourceLayout(source.value);
    beam.draw();
  };

  const onEvent = (event) => {
    if (event.event === "step") {
      partialTexts.set(event.sentence, event.text);
      beam.step(event);
      frame ||= requestAnimationFrame(drawPartial);
    } else if (event.event === "sentence") {
      partialTexts.delete(event.sentence);
      id("placeholder").hidden = true;
      view.settle(event.sentence, event);
      beam.settle(event);
    } else if (event.event === "end") {
      drawPartial();
      id("placeholder").hidden = true;
      view.finish(event.text);
      beam.finish();
      showDetected(event.detected);
    }
  };

  const stop = () => {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    frame = 0;
    partialTexts = new Map();
    controller?.abort();
    controller = null;
    setBusy(false);
  };

  const clearResult = () => {
    view.clear();
    beam.clear();
    showDetected(null);
    for (const name of ["result-actions", "legend"]) id(name).hidden = true;
    id("placeholder").hidden = Boolean(source.value.trim());
    id("spoken").textContent = "";
    summary = "";
    showSummary();
  };

  // An interrupted translation stays; the translation of an earlier text is removed.
  const fail = (message) => {
    if (!view.text()) clearResult();
    showError(message, translate);
    showSummary();
  };

  const conclude = (model, started) => {
    const sentences = view.sentences();
    const known = (word) => word.probability !== null;
    id("legend").hidden = !sentences.some((one) => one.words.some(known));
    id("keys").hidden = !settings.everyModelHas("attention");
    id("result-actions").hidden = !view.text();
    summary = [
      settings.state.from === "auto" && model,
      sentences.length === 1 && `score ${words.signed(sentences[0].best.score)}`,
      `${((performance.now() - started) / 1000).toFixed(1)}\u202fs`,
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
    showSummary();
    announceTranslation();
  };

  const translate = async () => {
    stop();
    attention.close();
    showError("");
    const text = source.value;
    const length = [...text].length;
    if (!settings || !text.trim() || key.isMissing()) return clearResult();
    if (length > limit) {
      const most = limit.toLocaleString("en");
      view.begin();
      return fail(`The text has ${length.toLocaleString("en")} characters; this server accepts at most ${most}.`);
    }
    controller = new AbortController();
    const { signal } = controller;
    const started = performance.now();
    const request = {
      ...settings.request(),
      q: text.toWellFormed?.() ?? text,
      n_best: Math.min(settings.beam(), MAX_ALTERNATIVES, alternativesLimit + 1),
      join_lines: Boolean(settings.state.joinLines),
      probabilities: true,
      alignments: settings.everyModelHas("alignments"),
    };
    let model = "";
    const hear = (event) => {
      onEvent(event);
      model = event.model ?? model;
    };
    summary = "";
    view.begin();
    beam.begin();
    setBusy(true);
    note();
    try {
      await api.streamTranslation(request, { signal, onWait: countDown, onEvent: hear });
      if (!signal.aborted) conclude(model, started);
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error.isAboutKey) return clearResult();
      fail(api.explain(error));
    } finally {
      if (!signal.aborted) setBusy(false);
    }
    return undefined;
  };

  // --- typing --------------------------------------------------------------------------------

  const size = (length) => (length < 280 ? "short" : length < 1200 ? "middle" : "long");

  const updateSource = () => {
    const length = [...source.value].length;
    markSource([]);
    document.querySelector(".panes").dataset.size = size(length);
    const count = id("count");
    const most = Number.isFinite(limit) ? ` / ${limit.toLocaleString("en")}` : "";
    count.textContent = length ? `${length.toLocaleString("en")}${most}` : "";
    count.toggleAttribute("data-over", length > limit);
    id("clear").hidden = !length;
    updateButtons();
  };

  // The browser chooses fonts, hyphenation and voices by the `lang` attributes.
  const setLanguages = () => {
    const { from, into } = settings.state;
    source.lang = from === "auto" ? "" : from;
    for (const name of ["translation", "spoken", "alternatives-list", "follow-list"]) {
      id(name).lang = into;
    }
  };

  const updateButtons = () => {
    const sample = settings && SAMPLES[settings.state.from === "auto" ? "en" : settings.state.from];
    id("sample").hidden = Boolean(source.value) || !sample;
    id("open").hidden = Boolean(source.value) || !settings;
  };

  const onInput = () => {
    transfer.clearLink();
    updateSource();
    clearTimeout(timer);
    controller?.abort();
    if (!source.value.trim()) return translate();
    setBusy(true);
    // Wait until the user pauses: longer for longer texts, because their translation costs more.
    timer = setTimeout(translate, 300 + Math.min(source.value.length / 10, 900));
    return undefined;
  };

  const replaceSource = (text) => {
    fileName = "";
    transfer.clearLink();
    source.value = text;
    updateSource();
    translate();
    source.focus();
  };

  const copy = async (button, label, text) => {
    showCopied(button, label, await transfer.copy(text));
    button.focus();
  };

  // --- files and links -----------------------------------------------------------------------

  const translatedName = (ending) =>
    `${fileName.replace(/\.[^.]*$/, "") || "translation"}.${settings.state.into}.${ending}`;

  const open = async (file) => {
    if (!file) return;
    showError("");
    try {
      const ending = transfer.wholeEnding(file);
      if (ending) {
        note(`Translating ${file.name} \u2026`);
        announce(`Translating ${file.name}.`);
        fileName = file.name;
        transfer.download(await api.translateFile(file, settings.request()), translatedName(ending.slice(1)));
        note("The file is translated; your browser is saving it.");
        announce("The file is translated; your browser is saving it.");
      } else {
        replaceSource(await transfer.readFile(file, limit));
        fileName = file.name;
      }
    } catch (error) {
      if (!(error instanceof api.RequestError)) console.error(error);
      if (!error.isAboutKey) showError(error.message);
      showSummary();
    }
  };

  const share = () => {
    const address = transfer.makeLink(settings.state, source.value.toWellFormed?.() ?? source.value);
    history.replaceState(null, "", address);
    copy(id("link"), "Copy link", address);
  };

  // Take text and languages from the address of the page, if it has any.
  const loadLink = () => {
    const link = transfer.readLink();
    if (!link) return;
    const { from, into, text } = link;
    const known = settings.setLanguages(from ?? settings.state.from, into ?? settings.state.into);
    setLanguages();
    source.value = text;
    updateSource();
    translate();
    if (!known) showError(`The link asks for ${from} into ${into}, but this server has no such model.`);
  };

  const toggle = () => {
    const panel = id("settings");
    panel.hidden = !panel.hidden;
    id("settings-toggle").setAttribute("aria-expanded", String(!panel.hidden));
  };

  source.addEventListener("input", (event) => (event.isComposing ? updateSource() : onInput()));
  source.addEventListener("compositionend", onInput);
  id("clear").addEventListener("click", () => replaceSource(""));
  id("sample").addEventListener("click", () =>
    replaceSource(SAMPLES[settings.state.from === "auto" ? "en" : settings.state.from]),
  );
  id("copy").addEventListener("click", () => copy(id("copy"), "Copy", view.text()));
  id("save").addEventListener("click", () => transfer.save(view.text(), translatedName("txt")));
  id("link").addEventListener("click", share);
  id("open").addEventListener("click", () => id("file").click());
  id("file").addEventListener("change", () => {
    open(id("file").files[0]);
    id("file").value = "";
  });
  addEventListener("hashchange", () => settings && loadLink());
  id("settings-toggle").addEventListener("click", toggle);
  id("swap").addEventListener("click", () => {
    const turned = view.text();
    settings.swap(lastDetected);
    if (turned) replaceSource(turned);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      translate();
    } else if (event.key === "Escape" && attention.isOpen() && !event.defaultPrevented) {
      attention.close({ back: true });
    }
  });

  // --- beginning -----------------------------------------------------------------------------

  const start = async () => {
    showError("");
    try {
      const [served, frontend] = await Promise.all([api.models(), api.settings().catch(() => ({}))]);
      if (!served.models.length) return showError("This server has no model.");
      if (frontend.charLimit > 0) limit = frontend.charLimit;
      alternativesLimit = frontend.maxAlternatives ?? Infinity;
      if (frontend.supportedFilesFormat) {
        id("file").accept = frontend.supportedFilesFormat.join();
        id("open-kinds").textContent = `Files of these kinds: ${frontend.supportedFilesFormat.join(", ")}`;
      }
      settings = heedful.settings(
        served,
        byName("from into model beam penalty strength strength-field defaults join-lines about swap"),
        () => {
          setLanguages();
          updateButtons();
          translate();
        },
      );
      setLanguages();
      updateSource();
      if (frontend.keyRequired || frontend.apiKeys) {
        key.request();
        if (!source.value) key.focus();
      }
      if (transfer.readLink()) loadLink();
      else if (source.value.trim()) translate();
    } catch (error) {
      if (!(error instanceof api.RequestError)) console.error(error);
      showError(error.message, start);
    }
    return undefined;
  };

  updateSource();
  start();
})();
