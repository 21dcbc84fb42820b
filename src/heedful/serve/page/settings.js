"use strict";
// Which languages, model and search: the selects above the panes, kept for the next visit.
globalThis.heedful ??= {};

heedful.choices = (() => {
  const AUTO = "auto";
  const KEPT = "heedful.choices";

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

  const recall = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT));
      return kept && typeof kept === "object" ? kept : {};
    } catch {
      return {};
    }
  };

  const keep = (state) => {
    try {
      localStorage.setItem(KEPT, JSON.stringify(state));
    } catch {
      // A browser that keeps nothing is a good browser, too.
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

  // One line about a model; what an exported one does not know is left out.
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

  // `at` are the elements; `changed` is called whenever another translation is asked for.
  const choices = ({ models, default: first }, at, changed) => {
    const start = models.find((model) => model.name === first) ?? models[0];
    const state = { from: start.source, into: start.target, name: start.name, ...recall() };
    const sources = unique(models.map((model) => model.source));

    const fitting = () =>
      models.filter(
        (model) => [AUTO, model.source].includes(state.from) && model.target === state.into,
      );

    const model = () => fitting().find((one) => one.name === state.name) ?? fitting()[0] ?? start;

    // Choices that the server does not have (any more) give way to some that it has.
    const mend = () => {
      const detects = sources.length > 1;
      if (!sources.includes(state.from) && !(detects && state.from === AUTO)) {
        state.from = start.source;
      }
      if (!fitting().length) {
        state.into = models.find((one) => [AUTO, one.source].includes(state.from)).target;
      }
      state.name = model().name;
    };

    const draw = () => {
      mend();
      const known = sources.map((code) => [code, language(code)]);
      const from = sources.length > 1 ? [[AUTO, "Detect language"], ...known] : known;
      fill(at.from, from, state.from);
      const reached = models.filter((one) => [AUTO, one.source].includes(state.from));
      const targets = unique(reached.map((one) => one.target));
      fill(at.into, targets.map((code) => [code, language(code)]), state.into);
      const named = unique(fitting().map((one) => one.name));
      fill(at.model, named.map((name) => [name, name]), state.name);
      const { kind, strength } = penaltyOf(state.penalty ?? model().length_penalty);
      at.beam.value = state.beam ?? model().beam;
      at.penalty.value = kind;
      at.strength.value = strength;
      at.strengthField.hidden = kind === "none";
      at.defaults.hidden = state.beam === undefined && state.penalty === undefined;
      at.about.textContent = about(model());
      const back = (one) => one.source === state.into && [AUTO, one.target].includes(state.from);
      at.swap.hidden = !models.some(back);
    };

    const set = (changes) => {
      Object.assign(state, changes);
      draw();
      keep(state);
      changed();
    };

    const searched = () => {
      const beam = at.beam.valueAsNumber;
      const kind = at.penalty.value;
      const strength = at.strength.value || (kind === "gnmt" ? "0.6" : "1");
      set({
        beam: Number.isInteger(beam) && beam > 0 ? beam : undefined,
        penalty: kind === "none" ? kind : `${kind}:${strength}`,
      });
    };

    at.from.addEventListener("change", () => set({ from: at.from.value }));
    at.into.addEventListener("change", () => set({ into: at.into.value }));
    at.model.addEventListener("change", () => set({ name: at.model.value }));
    for (const field of [at.beam, at.penalty, at.strength]) {
      field.addEventListener("change", searched);
    }
    at.defaults.addEventListener("click", () => {
      set({ beam: undefined, penalty: undefined });
      at.beam.focus();
    });
    draw();

    return {
      state,
      model,
      // With `auto` the text's language is what was detected.
      swap: (detected) =>
        set({ from: state.into, into: state.from === AUTO ? detected : state.from }),
      // Take languages on for this visit alone; whether there are such.
      take: (from, into) => {
        Object.assign(state, { from, into });
        draw();
        return state.from === from && state.into === into;
      },
      // Whether all that may translate can do something; with `auto` it is not known which will.
      every: (ability) => (state.from === AUTO ? fitting() : [model()]).every((one) => one[ability]),
      beam: () => state.beam ?? model().beam,
      // With `auto` the language decides which model it is, unless only one comes into question.
      request: () => ({
        source: state.from,
        target: state.into,
        ...((state.from !== AUTO || fitting().length === 1) && { model: model().name }),
        ...(state.beam !== undefined && { beam: state.beam }),
        ...(state.penalty !== undefined && { length_penalty: state.penalty }),
      }),
    };
  };

  return Object.assign(choices, { language });
})();
