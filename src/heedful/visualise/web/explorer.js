'use strict';
// The explorer: the selection, and the views that show it.

const KNOWN_FORMAT = 1;

/**
 * Show a document in an element.
 *
 * Options: `header` (false leaves out title and texts), `sections` (some of 'attention', 'steps',
 * 'beam'), `level` (of the first heading, by default 1), and the first selection: `kind`, `layer`,
 * `mode`, `heads` and `focus`, with the same meaning as in `show`.
 *
 * Returns `show(changes)` to change the selection: `kind` ('encoder', 'decoder' or 'cross'), `layer`
 * (from 0), `mode` ('heads', 'average' or 'rollout'), `heads` (booleans), `focus` (null or
 * `{side: 'query' or 'key', index}`); `step(index)` to go to a step of decoding; and `destroy()`.
 */
function explore(element, record, options = {}) {
  const root = make('div', { class: 'heedful-explorer' });
  element.replaceChildren(root);
  if (record.format !== KNOWN_FORMAT) {
    root.append(`This document has format ${record.format}, this page knows ${KNOWN_FORMAT}.`);
    return { show: () => {}, step: () => {}, destroy: () => root.remove() };
  }
  const models = record.models.map(readModel);
  const level = options.level ?? 1;
  const wanted = options.sections ?? ['attention', 'steps', 'beam'];
  if (options.header ?? true) root.append(header(record.title, models, level));
  const sections = [];
  const add = (name, title, has, build) => {
    if (wanted.includes(name) && models.some(has)) {
      const made = build(models.map((model) => (has(model) ? model : null)));
      root.append(section(title, level + 1, made.element));
      sections.push(made);
    }
  };
  add('attention', 'Where it looks', hasAttention, (list) => attention(list, options));
  add('steps', 'How it was written', ({ steps, target }) => steps.length > 0 && target.length > 0,
    (list) => sideBySide(list, stepsView));
  add('beam', 'What the search weighed', ({ beam }) => beam.length > 0,
    (list) => sideBySide(list, beamView));

  const looking = sections.find((made) => made.show);
  const update = (state) => sections.forEach((made) => made.update?.(state));
  looking?.follow(update);
  update(looking?.state ?? { layer: Infinity });
  return {
    show: (changes) => looking?.show(changes),
    step: (index) => sections.forEach((made) => made.go?.(index)),
    destroy: () => {
      sections.forEach((made) => made.stop?.());
      root.remove();
    },
  };
}

function hasAttention({ weights }) {
  return Object.keys(weights).length > 0;
}

function header(title, models, level) {
  return make(
    'header',
    { class: 'he-header' },
    make(`h${level}`, { class: title.length > 80 ? 'he-long' : null }, make('bdi', {}, visible(title))),
    make('div', { class: 'he-models' }, ...models.map((model) => make(
      'p',
      {},
      make('bdi', { class: 'he-text' }, model.text ? visible(model.text) : joined(model.target)),
      make('span', { class: 'he-quiet' }, model.name),
      ...(model.score === null ? [] : [make('span', { class: 'he-quiet' }, `score ${signed(model.score)}`)]),
    ))),
  );
}

function section(title, level, content) {
  const heading = make(`h${level}`, { id: uniqueId('section') }, title);
  return make('section', { 'aria-labelledby': heading.id }, heading, content);
}

/** Put the views of the models side by side, under the models' names if there are two. */
function sideBySide(models, view) {
  const views = models.map((model) => model && view(model));
  const element = make(
    'div',
    { class: models.length > 1 ? 'he-beside' : 'he-alone' },
    ...models.map((model, at) => make('div', { class: 'he-side' }, ...nameOf(models, at), views[at]?.element ?? '')),
  );
  const each = (act) => views.forEach((made) => made && act(made));
  return {
    element,
    update: (state) => each((made) => made.update(state)),
    go: (index) => each((made) => made.go?.(index)),
    stop: () => each((made) => made.stop?.()),
  };
}

function nameOf(models, at) {
  return models.length > 1 && models[at] ? [make('p', { class: 'he-name' }, models[at].name)] : [];
}

/** Make the pictures of attention and the controls that choose among them. */
function attention(models, options) {
  const most = (count) =>
    Math.max(...models.flatMap((model) => Object.values(model?.weights ?? {}).map(count)));
  const layersOf = (kind) => Math.max(...models.map((model) => model?.weights[kind]?.layers ?? 0));
  const kinds = KINDS.filter((kind) => models.some((model) => model?.weights[kind]));
  const state = {
    kind: kinds.includes('cross') ? 'cross' : kinds[0],
    layer: most((weights) => weights.layers) - 1,
    mode: 'heads',
    heads: Array(most((weights) => weights.heads)).fill(true),
    focus: null,
  };
  let tell = () => {};

  const update = () => {
    bar.update(state);
    views.forEach((view, at) => view && view.update(state, focusOf(models, state, at)));
  };
  const change = (changes) => {
    Object.assign(state, changes);
    if ('kind' in changes && !('focus' in changes)) state.focus = null;
    update();
    if (!('focus' in changes)) tell(state);
  };
  const look = (at) => (place) => {
    if (!state.focus?.isPinned && !isSame(state.focus, place)) change({ focus: place && { ...place, at } });
  };
  const pin = (at) => (place) => {
    const isAgain = state.focus?.isPinned && isSame(state.focus, place);
    change({ focus: isAgain ? null : { ...place, at, isPinned: true } });
  };
  const choose = (layer, which) => change(
    which === 'average' || which === 'rollout'
      ? { layer, mode: which }
      : { layer, mode: 'heads', heads: state.heads.map((_, head) => head === Number(which)) },
  );
  const bar = attentionBar(kinds, layersOf, modesOf(models), state, change);
  const views = models.map((model, at) => model && attentionView(model, look(at), pin(at), choose));
  const element = make(
    'div',
    {
      class: 'he-attention',
      on: { keydown: (event) => event.key === 'Escape' && change({ focus: null }) },
    },
    bar.element,
    make('div', { class: models.length > 1 ? 'he-beside' : 'he-alone' },
      ...views.map((view, at) => make('div', { class: 'he-side' }, ...nameOf(models, at), view?.element ?? ''))),
  );
  const show = ({ focus, ...changes }) => {
    change(changes);
    if (focus !== undefined) change({ focus: focus && { at: 0, isPinned: true, ...focus } });
  };
  const { kind, layer, mode, heads, focus } = options;
  const given = Object.entries({ kind, layer, mode, heads, focus }).filter(([, value]) => value !== undefined);
  show(Object.fromEntries(given));
  return { element, show, state, follow: (listener) => { tell = listener; }, update: null };
}

function isSame(focus, place) {
  return focus?.side === place?.side && focus?.index === place?.index;
}

/** Return the focus for a model; null if it belongs to a model with other tokens. */
function focusOf(models, { kind, focus }, at) {
  if (!focus || focus.at === at) return focus;
  const [own, other] = [at, focus.at].map((index) => models[index]?.tokens[kind][focus.side] ?? []);
  const isShared = own.length === other.length && own.every((token, index) => token === other[index]);
  return isShared ? focus : null;
}

function attentionView(model, look, pin, choose) {
  const lines = linesView(model, look, pin);
  const multiples = multiplesView(model, choose);
  return {
    element: make('div', { class: 'he-views' }, lines.element, multiples.element),
    update: (state, focus) => {
      lines.update(state, focus);
      multiples.update(state);
    },
  };
}

/** List the modes: heads, and the other modes that any attention of any model has. */
function modesOf(models) {
  const found = models.flatMap((model) =>
    Object.keys(model?.weights ?? {}).flatMap((kind) => summaries(model, kind)));
  return ['heads', 'average', 'rollout'].filter((mode) => mode === 'heads' || found.includes(mode));
}

/** Make the bar that chooses kind, layer, heads, average or rollout. */
function attentionBar(kinds, layersOf, modes, state, change) {
  const hints = {
    encoder: 'Source tokens look at source tokens',
    decoder: 'What is being written looks at what has been read',
    cross: 'What is being written looks at the source',
  };
  const kind = choice(
    'Attention',
    kinds.map((name) => [name, name[0].toUpperCase() + name.slice(1), hints[name]]),
    state.kind,
    (value) => change({ kind: value }),
  );
  const layer = choice(
    'Layer',
    Array.from({ length: Math.max(...kinds.map(layersOf)) }, (_, index) => [index, String(index + 1)]),
    state.layer,
    (value) => change({ layer: value }),
  );
  const mode = choice(
    'Show',
    [
      ['heads', 'Heads', 'Every head that is on, in its color'],
      ['average', 'Average', 'The mean of all heads'],
      ['rollout', 'Rollout', 'Followed through all layers up to this one'],
    ].filter(([name]) => modes.includes(name)),
    state.mode,
    (value) => change({ mode: value }),
  );
  const heads = headButtons(state, change);
  const choices = [kind, layer, ...(modes.length > 1 ? [mode, heads] : [])];
  const element = make('div', { class: 'he-bar-of-choices' }, ...choices.map((one) => one.element));
  const update = (now) => {
    kind.show(now.kind);
    layer.show(shownLayer({ layers: layersOf(now.kind) }, now));
    mode.show(now.mode);
    heads.show(now);
  };
  return { element, update };
}

/** Make a switch for each head; a double click leaves only that head on. */
function headButtons(state, change) {
  const set = (heads) => change({ heads, mode: 'heads' });
  const buttons = state.heads.map((_, head) => {
    const button = make(
      'button',
      {
        type: 'button',
        class: 'he-head',
        title: `Head ${head + 1}; double-click for this one only`,
        'aria-label': `Head ${head + 1}`,
        tabindex: head === 0 ? 0 : -1,
        on: {
          click: () => set(state.heads.map((isOn, at) => (at === head ? !isOn : isOn))),
          dblclick: () => set(state.heads.map((_, at) => at === head)),
        },
      },
      String(head + 1),
    );
    button.style.setProperty('--he-color', css(headColor(head)));
    return button;
  });
  const all = make('button', { type: 'button', class: 'he-plain', tabindex: -1, on: { click: () => set(state.heads.map(() => true)) } }, 'all');
  const none = make('button', { type: 'button', class: 'he-plain', tabindex: -1, on: { click: () => set(state.heads.map(() => false)) } }, 'none');
  const row = make('div', { class: 'he-heads', role: 'toolbar', 'aria-label': 'Heads' }, ...buttons,
    make('span', { class: 'he-all' }, all, none));
  walkWithArrows(row, 'button', (button, direction) => inList([...buttons, all, none], button, direction));
  const show = (now) => {
    row.classList.toggle('he-off', now.mode !== 'heads');
    buttons.forEach((button, head) => button.setAttribute('aria-pressed', String(now.heads[head])));
  };
  const element = make('div', { class: 'he-choice' }, make('span', { class: 'he-legend-text', 'aria-hidden': 'true' }, 'Heads'), row);
  return { element, show };
}
