'use strict';
// The beam as a tree: which hypotheses were kept, which were dropped, and why.

// Pixels: distances of columns and rows, width and height of a node, and the left margin.
const COLUMN = 116;
const ROW = 30;
const NODE = { width: 88, height: 24 };
const MARGIN = 18;
// Width of a printed page, in pixels.
const PAPER = 660;

const FATES = {
  open: 'Went on.',
  ended: 'Ended.',
  dropped: 'Dropped.',
  best: 'Ended, and is the translation.',
};
const ON_THE_WAY = 'On the way to the translation.';

/** Show one model's beam. */
function beamView(model) {
  const whole = withRoot(model);
  const state = { beam: whole, isPrinted: false };
  const place = make('div', { class: 'he-scroll he-tree', role: 'group', 'aria-label': 'The beam' });
  const readout = make('p', { class: 'he-readout' }, hint(TREE_HINT));
  const behind = tableBehind('The beam as a table', () => beamTable(whole));
  const hidesDropped = make('input', { type: 'checkbox' });
  const element = make(
    'div',
    { class: 'he-beam' },
    make('div', { class: 'he-legend' }, ...legend(), make('label', { class: 'he-check' }, hidesDropped, ' without dropped hypotheses')),
    place,
    readout,
    behind.element,
  );

  const show = () => drawTree(place, state);
  hidesDropped.addEventListener('change', () => {
    state.beam = hidesDropped.checked ? survivors(whole) : whole;
    show();
  });
  listenToNodes(place, state, readout);
  const relay = ({ type }) => {
    state.isPrinted = type === 'beforeprint';
    show();
  };
  const events = ['beforeprint', 'afterprint'];
  events.forEach((name) => addEventListener(name, relay));
  show();
  const stop = () => events.forEach((name) => removeEventListener(name, relay));
  return { element, update: () => {}, stop };
}

const TREE_HINT = 'Point at a hypothesis to read it, and why it was kept or dropped.';

/** Put the decoder's first input before the first step, so that the tree has one root. */
function withRoot(model) {
  const root = { token: model.start, parent: null, log_probability: 0, score: null, fate: 'open', why: '' };
  const first = (model.beam[0] ?? []).map((node) => ({ ...node, parent: 0 }));
  return [[root], first, ...model.beam.slice(1)];
}

function legend() {
  return Object.entries({ best: 'the translation', open: 'went on', ended: 'ended', dropped: 'dropped' })
    .map(([fate, words]) => make('span', { class: `he-key he-${fate}` }, make('span', { class: 'he-node-text' }, words)));
}

/** Draw the tree: on the screen as one band that scrolls, on paper as bands below each other. */
function drawTree(place, state) {
  const { beam } = state;
  state.layout = layOut(beam);
  state.nodes = new Map();
  state.edges = new Map();
  const across = state.isPrinted ? Math.floor((PAPER - MARGIN) / COLUMN) : beam.length;
  const bands = [];
  for (let first = 0; first < beam.length; first += across) {
    bands.push(band(state, first, Math.min(beam.length, first + across)));
  }
  place.replaceChildren(...bands);
  state.nodes.get('0 0').tabIndex = 0;
}

/** Draw some steps of the tree. */
function band(state, first, end) {
  const { beam, layout } = state;
  const steps = beam.slice(first, end);
  const width = MARGIN + steps.length * COLUMN;
  const height = ROW * Math.max(...steps.map((nodes) => nodes.length), beam[first - 1]?.length ?? 0);
  const edges = draw('svg', { width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' });
  const nodes = [];
  steps.forEach((line, offset) => line.forEach((node, index) => {
    const step = first + offset;
    const row = layout.rows[step][index];
    const isOnWay = layout.isOnWay[step][index];
    const at = { x: MARGIN + offset * COLUMN, y: row * ROW };
    const button = nodeButton(node, step, index, isOnWay);
    button.style.left = `${at.x}px`;
    button.style.top = `${at.y}px`;
    nodes.push(button);
    state.nodes.set(`${step} ${index}`, button);
    if (step > 0) {
      const edge = edgeTo(at, layout.rows[step - 1][node.parent], offset === 0, node, isOnWay);
      edges.append(edge);
      state.edges.set(`${step} ${index}`, edge);
    }
  }));
  const element = make('div', { class: 'he-band' }, edges, ...nodes);
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
  return element;
}

function nodeButton(node, step, index, isOnWay) {
  const label = [
    spoken(node.token), step === 0 ? 'the start' : `step ${step}`, fateInWords(node, isOnWay),
  ];
  return make(
    'button',
    {
      type: 'button',
      class: `he-node he-${node.fate}${isOnWay ? ' he-way' : ''}`,
      tabindex: -1,
      'data-step': step,
      'data-index': index,
      'aria-label': label.join(', '),
    },
    make('span', { class: 'he-node-text' }, tokenLabel(node.token)),
  );
}

/** Draw the branch from the end of one node's line to the beginning of another's. */
function edgeTo({ x, y }, parentRow, isFirstOfBand, node, isOnWay) {
  const left = isFirstOfBand ? 0 : x - COLUMN + NODE.width;
  const [from, to] = [parentRow * ROW + NODE.height - 1, y + NODE.height - 1];
  const middle = (left + x) / 2;
  return draw('path', {
    class: `he-edge he-${node.fate}${isOnWay ? ' he-way' : ''}`,
    d: `M${left} ${from}C${middle} ${from} ${middle} ${to} ${x} ${to}`,
  });
}

/** Highlight the path to the node under the pointer or in focus, and describe the node. */
function listenToNodes(place, state, readout) {
  const light = (button) => {
    for (const lit of place.querySelectorAll('.he-lit')) lit.classList.remove('he-lit');
    if (!button) return;
    const [step, index] = [Number(button.dataset.step), Number(button.dataset.index)];
    const way = lineage(state.beam, step, index);
    for (const [at, which] of way) {
      state.nodes.get(`${at} ${which}`).classList.add('he-lit');
      state.edges.get(`${at} ${which}`)?.classList.add('he-lit');
    }
    readout.replaceChildren(...hypothesis(state, way));
  };
  const relay = (event) => light(event.target.closest('.he-node'));
  place.addEventListener('pointerover', relay);
  place.addEventListener('focusin', relay);
  place.addEventListener('click', relay);
  place.addEventListener('pointerleave', () => light(null));
  place.addEventListener('focusout', () => light(null));
  walkWithArrows(place, '.he-node', (button, direction) => {
    const [step, index] = [Number(button.dataset.step), Number(button.dataset.index)];
    return nodeBeside(state, step, index, direction);
  });
}

/** Return a node's neighbor: left its parent, right its first child, otherwise a node of its step. */
function nodeBeside({ beam, layout, nodes }, step, index, direction) {
  const rows = layout.rows[step];
  const atRow = (row) => nodes.get(`${step} ${rows.indexOf(row)}`);
  if (direction === 'left') return step > 0 && nodes.get(`${step - 1} ${beam[step][index].parent}`);
  if (direction === 'right') {
    const children = [...(beam[step + 1] ?? []).keys()]
      .filter((child) => beam[step + 1][child].parent === index)
      .sort((a, b) => layout.rows[step + 1][a] - layout.rows[step + 1][b]);
    return nodes.get(`${step + 1} ${children[0]}`);
  }
  const to = { up: rows[index] - 1, down: rows[index] + 1, first: 0 }[direction];
  return atRow(to ?? rows.length - 1);
}

/** Describe one hypothesis. */
function hypothesis({ beam, layout }, way) {
  const [step, index] = way.at(-1);
  if (step === 0) return ['What the decoder reads first.'];
  const node = beam[step][index];
  const text = joined(way.slice(1).map(([at, which]) => beam[at][which].token));
  const numbers = [`step ${step}`];
  if (node.log_probability !== null) {
    numbers.push(`probability ${percent(Math.exp(node.log_probability))}`, `log ${signed(node.log_probability)}`);
  }
  if (node.score !== null) numbers.push(`score ${signed(node.score)}`);
  return [
    make('strong', {}, make('bdi', {}, text)),
    make('span', { class: 'he-quiet' }, ` ${numbers.join(' · ')} `),
    fateInWords(node, layout.isOnWay[step][index]),
  ];
}

function fateInWords(node, isOnWay) {
  return [fateName(node, isOnWay), node.why].filter(Boolean).join(' ');
}

function fateName(node, isOnWay) {
  return isOnWay && node.fate === 'open' ? ON_THE_WAY : FATES[node.fate];
}

/** Write a number with a minus sign, not a hyphen. */
function signed(number) {
  return number.toFixed(3).replace('-', '−');
}

/** Make the table of the tree: every hypothesis of every step. */
function beamTable(beam) {
  const { isOnWay } = layOut(beam);
  const rows = beam.slice(1).flatMap((nodes, at) => nodes.map((node, index) => {
    const way = lineage(beam, at + 1, index).slice(1);
    return [
      String(at + 1),
      make('bdi', {}, joined(way.map(([step, which]) => beam[step][which].token))),
      node.log_probability === null ? '' : signed(node.log_probability),
      node.score === null ? '' : signed(node.score),
      fateName(node, isOnWay[at + 1][index]),
      node.why,
    ];
  }));
  return table(
    'Hypotheses of the beam', ['step', 'hypothesis', 'log-probability', 'score', 'fate', 'why'], rows,
  );
}
