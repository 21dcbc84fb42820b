'use strict';
// Attention as lines between tokens, as in figures 3 to 5 of the paper, with one color per head.

// Levels of opacity. Lines of one level are one path, so a head has a few paths and not thousands.
const SHADES = 12;
// The weakest drawn line must be visible on a projected page too.
const LEAST_OPACITY = 0.25;
const SCALE = [0.1, 0.5, 1];
// Smallest drawn weight in the lines of one token. In the lines of all tokens it is larger, and
// largest if there are more tokens than `MANY_TOKENS`.
const FAINTEST_OF_ONE = 0.01;
const MANY_TOKENS = 80;

/**
 * Return the matrices to draw: a matrix and a color for each selected head, or the one matrix of
 * the average or the rollout. Empty if this model has no such weights.
 */
function strands(model, state) {
  const weights = model.weights[state.kind];
  if (!weights) return [];
  const layer = shownLayer(weights, state);
  if (state.mode === 'average') return [{ color: ALL_HEADS, found: weights.mean(layer) }];
  if (state.mode === 'rollout') {
    return [{ color: ALL_HEADS, found: rollout(model, state.kind, layer) }];
  }
  return state.heads.flatMap((isOn, head) =>
    isOn && head < weights.heads
      ? [{ color: headColor(head), found: weights.head(layer, head), head }]
      : []);
}

/** Draw a model's lines; `look` gets the token under the pointer or in focus, `pin` a clicked one. */
function linesView(model, look, pin) {
  const queries = make('ol', { class: 'he-column he-queries' });
  const keys = make('ol', { class: 'he-column he-keys' });
  const all = draw('g');
  const some = draw('g');
  const drawing = draw('svg', { preserveAspectRatio: 'none', 'aria-hidden': 'true' }, all, some);
  const readout = make('p', { class: 'he-readout', 'aria-live': 'polite' });
  const picture = make(
    'div',
    { class: 'he-lines', role: 'group', 'aria-label': 'Lines between tokens' },
    queries,
    drawing,
    keys,
  );
  const behind = tableBehind('These weights as a table', () => weightTable(model, shown));
  const element = make('div', { class: 'he-picture' }, picture, scale(), readout, behind.element);
  const columns = { query: queries, key: keys };
  let shown = null;
  let tokens = null;

  listenToTokens(picture, columns, look, pin);

  const update = (state, focus) => {
    const others = shown === null || changesLines(shown, state);
    const pinned = focus?.isPinned ? focus : null;
    const isTableNew = others || shown.pinned !== pinned;
    shown = { ...state, focus, pinned };
    if (tokens !== model.tokens[state.kind]) {
      tokens = model.tokens[state.kind];
      showTokens(columns, tokens, state.kind);
    }
    const drawn = strands(model, state);
    picture.classList.toggle('he-many', mostTokens(tokens) > MANY_TOKENS);
    drawing.setAttribute('viewBox', `0 0 100 ${mostTokens(tokens)}`);
    picture.style.setProperty('--he-count', mostTokens(tokens));
    if (others) drawAll(all, drawn, mostTokens(tokens));
    drawSome(some, drawn, focus);
    picture.classList.toggle('he-focused', focus !== null);
    paintTokens(columns, drawn, focus, phraseOf(model, state, focus));
    readout.replaceChildren(...sentence(model, shown, drawn));
    if (isTableNew) behind.update();
  };
  return { element, update };
}

function changesLines(before, now) {
  return ['kind', 'layer', 'mode', 'heads'].some((name) => before[name] !== now[name]);
}

function mostTokens(tokens) {
  return Math.max(tokens.query.length, tokens.key.length);
}

// Names of the two sides.
const SIDES = {
  encoder: ['looks', 'is looked at'],
  decoder: ['being written', 'already read'],
  cross: ['being written', 'source'],
};

/** Fill both columns with buttons. */
function showTokens(columns, tokens, kind) {
  ['query', 'key'].forEach((side, at) => {
    const column = columns[side];
    column.setAttribute('aria-label', SIDES[kind][at]);
    column.dataset.heading = SIDES[kind][at];
    column.replaceChildren(
      ...tokens[side].map((token, index) =>
        make('li', {}, make(
          'button',
          {
            type: 'button',
            class: 'he-word',
            'data-side': side,
            'data-index': index,
            tabindex: index === 0 ? 0 : -1,
            'aria-pressed': 'false',
            title: spoken(token),
          },
          tokenLabel(token),
        ))),
    );
  });
}

/** Show the lines of the token under the pointer or in focus; a click keeps them. */
function listenToTokens(picture, columns, look, pin) {
  const place = (target) => {
    const button = target.closest('.he-word');
    return button && { side: button.dataset.side, index: Number(button.dataset.index) };
  };
  picture.addEventListener('pointerover', (event) => {
    if (event.pointerType !== 'touch') look(place(event.target));
  });
  picture.addEventListener('pointerleave', () => look(null));
  picture.addEventListener('focusin', (event) => {
    if (event.target.matches(':focus-visible')) look(place(event.target));
  });
  picture.addEventListener('focusout', () => look(null));
  picture.addEventListener('click', (event) => {
    const found = place(event.target);
    if (found) pin(found);
  });
  for (const side of ['query', 'key']) {
    walkWithArrows(columns[side], '.he-word', (button, direction) => {
      const across = columns[{ left: 'query', right: 'key' }[direction]];
      const buttons = [...(across ?? columns[side]).querySelectorAll('.he-word')];
      const index = Number(button.dataset.index);
      if (across) return buttons[Math.min(index, buttons.length - 1)];
      return inList(buttons, button, direction);
    });
  }
}

/** Draw the lines of all tokens. */
function drawAll(group, drawn, tokens) {
  const faintest = tokens > MANY_TOKENS ? 0.12 : 0.05;
  group.replaceChildren(...drawn.flatMap(({ found, color }, at) =>
    paths(color, found, fan(at, drawn), faintest, [0, found.rows], [0, found.columns])));
}

/** Draw the lines of the token under the pointer or in focus. */
function drawSome(group, drawn, focus) {
  group.replaceChildren(...drawn.flatMap(({ found, color }, at) => {
    if (!focus) return [];
    const one = [focus.index, focus.index + 1];
    const rows = focus.side === 'query' ? one : [0, found.rows];
    const columns = focus.side === 'key' ? one : [0, found.columns];
    return paths(color, found, fan(at, drawn), FAINTEST_OF_ONE, rows, columns);
  }));
}

/** Return where a head's lines begin, from 0 to 1 in a token's row, so that none hides another. */
function fan(at, drawn) {
  return 0.5 + 0.6 * ((at + 0.5) / drawn.length - 0.5);
}

/** Draw some rows and columns: for each shade one path with all lines of that shade. */
function paths(color, { columns, values }, middle, faintest, [top, bottom], [left, right]) {
  const shades = Array.from({ length: SHADES }, () => []);
  for (let row = top; row < bottom; row += 1) {
    for (let column = left; column < right; column += 1) {
      const weight = values[row * columns + column];
      if (weight < faintest) continue;
      const shade = Math.min(SHADES - 1, Math.floor(weight * SHADES));
      shades[shade].push(`M0 ${(row + middle).toFixed(3)}L100 ${(column + middle).toFixed(3)}`);
    }
  }
  return shades.flatMap((lines, shade) =>
    lines.length
      ? [draw('path', {
        d: lines.join(''),
        stroke: css(color),
        'stroke-opacity': opacity((shade + 0.5) / SHADES).toFixed(2),
      })]
      : []);
}

function opacity(weight) {
  return LEAST_OPACITY + (1 - LEAST_OPACITY) * weight;
}

/** Draw a sample line for each of several weights. */
function scale() {
  const lines = SCALE.map((weight) => {
    const line = draw('path', { d: 'M0 5H28', 'stroke-opacity': opacity(weight).toFixed(2) });
    return make('span', {}, draw('svg', { viewBox: '0 0 28 10', 'aria-hidden': 'true' }, line),
      String(weight));
  });
  return make('p', { class: 'he-scale' }, 'weight', ...lines);
}

/** Paint a stripe for each head, as dark as its weight, behind the tokens of the other side. */
function paintTokens(columns, drawn, focus, phrase) {
  for (const side of ['query', 'key']) {
    columns[side].querySelectorAll('.he-word').forEach((button, index) => {
      const isHere = focus?.side === side && focus.index === index;
      button.classList.toggle('he-here', isHere);
      button.setAttribute('aria-pressed', String(isHere && focus.isPinned));
      button.classList.toggle('he-phrase', side === 'key' && isInside(phrase, index));
      const weights = focus && focus.side !== side
        ? drawn.map(({ found }) => weightBetween(found, focus, index))
        : [];
      button.style.backgroundImage = stripes(weights, drawn);
      button.classList.toggle('he-dim', weights.length > 0 && Math.max(...weights) < 0.05);
    });
  }
}

/** Return the phrase of a parser's tree whose bracket is in focus, if its words are shown. */
function phraseOf(model, state, focus) {
  const isSymbol = state.kind === 'cross' && focus?.side === 'query';
  return isSymbol ? model.phrases.get(focus.index) : undefined;
}

function isInside(phrase, index) {
  return phrase !== undefined && index >= phrase.first && index < phrase.end;
}

function weightBetween(found, focus, index) {
  const [row, column] = focus.side === 'query' ? [focus.index, index] : [index, focus.index];
  return found.values[row * found.columns + column];
}

function stripes(weights, drawn) {
  if (!weights.some((weight) => weight >= FAINTEST_OF_ONE)) return '';
  const width = 100 / weights.length;
  const stops = weights.map((weight, at) => {
    const color = css(drawn[at].color, 0.6 * weight);
    return `${color} ${(at * width).toFixed(2)}% ${((at + 1) * width).toFixed(2)}%`;
  });
  return `linear-gradient(90deg, ${stops.join(', ')})`;
}

/** Describe the picture in a sentence: at most five of the largest weights of the token in focus. */
function sentence(model, state, drawn) {
  if (!model.weights[state.kind]) return ['This model has no attention of this kind.'];
  if (!drawn.length) return ['No head is switched on.'];
  const what = { heads: 'mean of the heads shown', average: 'average', rollout: 'rollout' };
  if (!state.focus) return [hint('Point at a token to see its lines only; click to keep them.')];
  const { query, key } = model.tokens[state.kind];
  const { side, index } = state.focus;
  const [own, others] = side === 'query' ? [query, key] : [key, query];
  const verb = side === 'query' ? 'looks at' : 'is looked at by';
  const best = largest(drawn, state.focus, others.length)
    .map(([at, weight]) => [others[at], weight]);
  return [
    make('strong', {}, tokenLabel(own[index])),
    ` ${verb} `,
    ...(best.length ? withShares(best) : ['nothing much']),
    ...phraseShare(phraseOf(model, state, state.focus), drawn, index),
    ' ',
    make('span', { class: 'he-quiet' }, `(${what[state.mode]})`),
  ];
}

/** Describe how much of the attention goes to the words of a phrase. */
function phraseShare(phrase, drawn, row) {
  if (!phrase) return [];
  const shares = drawn.map(({ found }) =>
    found.values.slice(row * found.columns + phrase.first, row * found.columns + phrase.end)
      .reduce((total, weight) => total + weight, 0));
  const mean = shares.reduce((total, share) => total + share, 0) / shares.length;
  return [' · ', make('strong', {}, 'its words'), ` ${percent(Math.min(mean, 1))}`];
}

function largest(drawn, focus, count) {
  const means = Array.from({ length: count }, (_, index) => {
    const weights = drawn.map(({ found }) => weightBetween(found, focus, index));
    return [index, weights.reduce((total, weight) => total + weight, 0) / weights.length];
  });
  return means.sort((a, b) => b[1] - a[1]).slice(0, 5).filter(([, weight]) => weight >= 0.01);
}

/**
 * Make the table of the picture: for a clicked token a column for each head, otherwise the mean
 * of all selected heads. It does not follow the pointer, because it may be large.
 */
function weightTable(model, state) {
  const drawn = strands(model, state);
  if (!drawn.length) return make('p', {}, 'Nothing is shown.');
  const { query, key } = model.tokens[state.kind];
  if (!state.pinned) {
    const mean = average(drawn.map(({ found }) => found));
    return matrixTable(matrixCaption(model, state, drawn), mean, query, key, ALL_HEADS);
  }
  const { side, index } = state.pinned;
  const [own, others] = side === 'query' ? [query, key] : [key, query];
  const caption = side === 'query' ? 'Where it looks: ' : 'Who looks at it: ';
  const headings = drawn.map(({ head }) => (head === undefined ? state.mode : `head ${head + 1}`));
  const rows = others.map((token, at) => [
    tokenLabel(token),
    ...drawn.map(({ found, color }) =>
      weightCell(weightBetween(found, state.pinned, at), color)),
  ]);
  return table(caption + spoken(own[index]), ['token', ...headings], rows);
}

function matrixCaption(model, state, drawn) {
  const of = { average: 'average of all heads', rollout: 'rollout up to this layer' }[state.mode]
    ?? `mean of ${drawn.map(({ head }) => `head ${head + 1}`).join(', ')}`;
  const layer = shownLayer(model.weights[state.kind], state) + 1;
  return `${state.kind}, layer ${layer}: ${of}. A row looks, a column is looked at.`;
}
