"use strict";
// Settings: languages, model and search options, kept for the next visit.
globalThis.heedful ??= {};

heedful.settings = (() => {
  const AUTO = "auto";
  const STORAGE_KEY = "heedful.settings";

  const names = (() => {
    try {
      return new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
    } catch {
      return null;
    }
  })();

  const language = (code) => {
    try {
      return names?.of(code) ?? code;
    } catch {
      return code;
    }
  };

  const load = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(STORAGE_KEY));
      return kept && typeof kept === "object" ? kept : {};
    } catch {
      return {};
    }
  };

  const store = (state) => {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(state));
    } catch {
      // Storage may be full or forbidden; the settings then last for this visit only.
    }
  };

  const fill = (select, options, chosen) => {
    select.replaceChildren(
      ...options.map(([value, label]) => {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = label;
        return option;
      }),
    );
    select.value = chosen;
    select.disabled = options.length < 2;
  };

  const unique = (values) => [...new Set(values)];

  const count = (number) => number.toLocaleString("en");

  const millions = (number) =>
    number < 1e6 ? `${count(number)} parameters` : `${(number / 1e6).toFixed(1)} million parameters`;

  // One line about a model. An exported model lacks some of these values; they are left out.
  const about = (model) =>
    [
      model.name,
      model.parameters && millions(model.parameters),
      model.layers && model.heads && `${model.layers} layers of ${model.heads} heads`,
      typeof model.step === "number" && `step ${count(model.step)}`,
      model.weights && `weights: ${model.weights}`,
      model.engine,
    ]
      .filter(Boolean)
      .join(" · ");

  const penaltyOf = (text) => {
    const [kind, strength = ""] = String(text).split(":");
    return { kind, strength };
  };

  // `onChange` is called whenever the user changes a setting.
  const settings = ({ models, default: first }, elements, onChange) => {
    const start = models.find((model) => model.name === first) ?? models[0];
    const state = { from: start.source, into: start.target, name: start.name, ...load() };
    const sources = unique(models.map((model) => model.source));

    const matchingModels = () =>
      models.filter(
        (model) => [AUTO, model.source].includes(state.from) && model.target === state.into,
      );

    const model = () => {
      const matching = matchingModels();
      return matching.find((one) => one.name === state.name) ?? matching[0] ?? start;
    };

    // Replace stored values that the server does not offer (any more).
    const validate = () => {
      const detects = sources.length > 1;
      if (!sources.includes(state.from) && !(detects && state.from === AUTO)) {
        state.from = start.source;
      }
      if (!matchingModels().length) {
        state.into = models.find((one) => [AUTO, one.source].includes(state.from)).target;
      }
      state.name = model().name;
    };

    const draw = () => {
      validate();
      const known = sources.map((code) => [code, language(code)]);
      const from = sources.length > 1 ? [[AUTO, "Detect language"], ...known] : known;
      fill(elements.from, from, state.from);
      const withSource = models.filter((one) => [AUTO, one.source].includes(state.from));
      const targets = unique(withSource.map((one) => one.target));
      fill(elements.into, targets.map((code) => [code, language(code)]), state.into);
      const named = unique(matchingModels().map((one) => one.name));
      fill(elements.model, named.map((name) => [name, name]), state.name);
      const { kind, strength } = penaltyOf(state.penalty ?? model().length_penalty);
      elements.beam.value = state.beam ?? model().beam;
      elements.penalty.value = kind;
      elements.strength.value = strength;
      elements.strengthField.hidden = kind === "none";
      elements.defaults.hidden = state.beam === undefined && state.penalty === undefined;
      elements.joinLines.checked = Boolean(state.joinLines);
      elements.about.textContent = about(model());
      const back = (one) => one.source === state.into && [AUTO, one.target].includes(state.from);
      elements.swap.hidden = !models.some(back);
    };

    const set = (changes) => {
      Object.assign(state, changes);
      draw();
      store(state);
      onChange();
    };

    const onSearchChange = () => {
      const beam = elements.beam.valueAsNumber;
      const kind = elements.penalty.value;
      const strength = elements.strength.value || (kind === "gnmt" ? "0.6" : "1");
      set({
        beam: Number.isInteger(beam) && beam > 0 ? beam : undefined,
        penalty: kind === "none" ? kind : `${kind}:${strength}`,
      });
    };

    elements.from.addEventListener("change", () => set({ from: elements.from.value }));
    elements.into.addEventListener("change", () => set({ into: elements.into.value }));
    elements.model.addEventListener("change", () => set({ name: elements.model.value }));
    for (const field of [elements.beam, elements.penalty, elements.strength]) {
      field.addEventListener("change", onSearchChange);
    }
    elements.joinLines.addEventListener("change", () =>
      set({ joinLines: elements.joinLines.checked || undefined }),
    );
    elements.defaults.addEventListener("click", () => {
      set({ beam: undefined, penalty: undefined });
      elements.beam.focus();
    });
    draw();

    return {
      state,
      model,
      // With `auto` the source language is the detected one.
      swap: (detected) =>
        set({ from: state.into, into: state.from === AUTO ? detected : state.from }),
      // Set the languages without storing them. Returns whether the server has them.
      setLanguages: (from, into) => {
        Object.assign(state, { from, into });
        draw();
        return state.from === from && state.into === into;
      },
      // Whether every model that the server may choose has an ability: with `auto` there are several.
      everyModelHas: (ability) =>
        (state.from === AUTO ? matchingModels() : [model()]).every((one) => one[ability]),
      beam: () => state.beam ?? model().beam,
      // With `auto` the server chooses the model by language, so it is named only if just one fits.
      request: () => ({
        source: state.from,
        target: state.into,
        ...((state.from !== AUTO || matchingModels().length === 1) && { model: model().name }),
        ...(state.beam !== undefined && { beam: state.beam }),
        ...(state.penalty !== undefined && { length_penalty: state.penalty }),
      }),
    };
  };

  return Object.assign(settings, { language });
})();
