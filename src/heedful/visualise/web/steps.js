'use strict';
// Decoding step by step: the text so far, the candidates for the next token, and the attention.

const PACE = 900; // milliseconds per step

// Icons as paths in a square of 16 by 16, because not every system has a font with these symbols.
const SHAPES = {
  first: 'M3 3h2v10H3zM13 3v10L6 8z',
  back: 'M12 3v10L4 8z',
  play: 'M4 3v10l9-5z',
  pause: 'M4 3h3v10H4zM9 3h3v10H9z',
  on: 'M4 3v10l8-5z',
  last: 'M11 3h2v10h-2zM3 3v10l7-5z',
};

function shape(name) {
  return draw(
    'svg',
    { viewBox: '0 0 16 16', width: 14, height: 14, 'aria-hidden': 'true' },
    draw('path', { d: SHAPES[name], fill: 'currentColor' }),
  );
}

/** Show one model's steps. */
function stepsView(model) {
  const count = model.target.length;
  const state = { step: 0, layer: 0, timer: null };
  const written = make(
    'p',
    { class: 'he-written', dir: directionOf(model.target), 'aria-label': 'Written so far' },
  );
  const source = make('p', { class: 'he-written he-source', dir: directionOf(model.source) });
  const candidates = make('div', { class: 'he-candidates' });
  const said = make('p', { class: 'he-hidden', 'aria-live': 'polite' });
  const controls = stepControls(count, (step) => go(step, true), () => toggle());
  const behind = tableBehind('All steps as a table', () => allSteps(model));

  showWritten(written, model.target, (step) => go(step, true));
  source.append(...model.source.map((token) => make('span', { class: 'he-piece' }, tokenLabel(token))));

  const show = () => {
    controls.show(state.step, state.timer !== null);
    markWritten(written, state.step);
    shadeSource(source, model, state);
    candidates.replaceChildren(candidateTable(model, state.step));
  };
  const go = (step, isAsked) => {
    state.step = Math.max(0, Math.min(count - 1, step));
    if (isAsked) {
      stop();
      said.textContent = stepInWords(model, state.step);
    }
    show();
  };
  const stop = () => {
    clearInterval(state.timer);
    state.timer = null;
  };
  const toggle = () => {
    if (state.timer !== null) stop();
    else {
      if (state.step === count - 1) state.step = 0;
      state.timer = setInterval(() => {
        if (state.step === count - 2) stop();
        go(state.step + 1, false);
      }, PACE);
    }
    show();
  };
  const update = ({ layer }) => {
    state.layer = layer;
    show();
  };
  const element = make(
    'div',
    { class: 'he-steps' },
    controls.element,
    make('div', { class: 'he-step' },
      make('div', { class: 'he-texts' },
        make('p', { class: 'he-label' }, 'Written so far'), written,
        ...(model.weights.cross ? [make('p', { class: 'he-label he-looked' }), source] : [])),
      candidates),
    said,
    behind.element,
  );
  return { element, update, stop, go: (step) => go(step, true) };
}

/** Make the buttons of a player, and the slider. */
function stepControls(count, go, toggle) {
  const slider = make('input', {
    type: 'range', min: 1, max: count, value: 1, 'aria-label': 'Step',
    on: { input: () => go(Number(slider.value) - 1) },
  });
  const at = () => Number(slider.value) - 1;
  const button = (name, label, act) => make(
    'button', { type: 'button', 'aria-label': label, title: label, on: { click: act } }, shape(name),
  );
  const play = button('play', 'Play', toggle);
  play.classList.add('he-play');
  const number = make('span', { class: 'he-quiet he-count' });
  const element = make(
    'div',
    { class: 'he-player', role: 'group', 'aria-label': 'Play the steps' },
    button('first', 'First step', () => go(0)),
    button('back', 'Step back', () => go(at() - 1)),
    play,
    button('on', 'Step on', () => go(at() + 1)),
    button('last', 'Last step', () => go(count - 1)),
    slider,
    number,
  );
  const show = (step, isPlaying) => {
    slider.value = step + 1;
    slider.setAttribute('aria-valuetext', `step ${step + 1} of ${count}`);
    number.textContent = `${step + 1} / ${count}`;
    play.replaceChildren(shape(isPlaying ? 'pause' : 'play'));
    play.setAttribute('aria-label', isPlaying ? 'Pause' : 'Play');
    play.title = isPlaying ? 'Pause' : 'Play';
  };
  return { element, show };
}

/** Put the target on the page once, so that nothing moves while it is written. */
function showWritten(place, target, go) {
  place.append(...target.map((token, step) => make(
    'button',
    { type: 'button', class: 'he-piece', tabindex: step === 0 ? 0 : -1, on: { click: () => go(step) } },
    tokenLabel(token),
  )));
  const turned = place.dir === 'rtl' ? { left: 'right', right: 'left' } : {};
  walkWithArrows(place, '.he-piece', (button, direction) =>
    inList([...place.querySelectorAll('.he-piece')], button, turned[direction] ?? direction));
}

function markWritten(place, step) {
  place.querySelectorAll('.he-piece').forEach((piece, index) => {
    piece.classList.toggle('he-now', index === step);
    piece.classList.toggle('he-later', index > step);
    if (index === step) piece.setAttribute('aria-current', 'step');
    else piece.removeAttribute('aria-current');
  });
}

/** Shade the source by the mean attention of one layer's heads. */
function shadeSource(place, model, { step, layer }) {
  const { cross } = model.weights;
  if (!cross) return;
  const at = shownLayer(cross, { layer });
  const found = cross.mean(at);
  place.querySelectorAll('.he-piece').forEach((piece, index) => {
    const weight = found.values[step * found.columns + index];
    piece.style.backgroundColor = css(ALL_HEADS, 0.65 * Math.sqrt(weight));
    piece.title = percent(weight);
  });
  const mean = cross.heads > 1 ? ' (mean of its heads)' : '';
  place.previousSibling.textContent = `Where layer ${at + 1} looked${mean}`;
}

/** Make the table of a step's candidates, the rest of the probability last. */
function candidateTable(model, step) {
  const candidates = model.steps[step] ?? [];
  const rest = 1 - candidates.reduce((total, [, probability]) => total + probability, 0);
  const rows = candidates.map(([token, probability]) =>
    candidateRow(tokenLabel(token), probability, token === model.target[step]));
  if (rest > 0.0005) {
    rows.push(candidateRow(make('span', { class: 'he-quiet' }, 'all others'), rest, false));
  }
  return make(
    'table',
    {},
    make('caption', {}, `What could have come at step ${step + 1}`),
    make('tbody', {}, ...rows),
  );
}

function candidateRow(label, probability, isChosen) {
  const bar = make('span', { class: 'he-bar' });
  bar.style.width = `${(100 * probability).toFixed(2)}%`;
  return make(
    'tr',
    { class: isChosen ? 'he-taken' : null },
    make('th', { scope: 'row' }, label, ...(isChosen ? [make('span', { class: 'he-hidden' }, ' (chosen)')] : [])),
    make('td', { class: 'he-number' }, percent(probability)),
    make('td', { class: 'he-bars', 'aria-hidden': 'true' }, bar),
  );
}

function probabilityOfChosen(model, step) {
  const found = (model.steps[step] ?? []).find(([token]) => token === model.target[step]);
  return found?.[1];
}

function stepInWords(model, step) {
  const probability = probabilityOfChosen(model, step);
  const told = probability === undefined ? '' : `, ${percent(probability)}`;
  return `Step ${step + 1} of ${model.target.length}: ${spoken(model.target[step])}${told}`;
}

/** Make the table of the steps, with their best candidates. */
function allSteps(model) {
  const rows = model.target.map((token, step) => {
    const probability = probabilityOfChosen(model, step);
    const others = (model.steps[step] ?? []).filter(([other]) => other !== token);
    return [
      String(step + 1),
      tokenLabel(token),
      probability === undefined ? '' : percent(probability),
      make('span', {}, ...withShares(others)),
    ];
  });
  return table('Steps of decoding', ['step', 'chosen', 'probability', 'others'], rows);
}
