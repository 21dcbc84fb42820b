'use strict';
// One color per head, the same in light and dark themes, and in lines, squares and buttons.

// The colors are equally light, so that no head looks more important. They are dark enough for a
// white background and light enough for a black one. Color is never the only mark: heads have
// numbers and can be shown one at a time.
const HEAD_COLORS = [
  [48, 119, 191], [186, 89, 40], [35, 133, 86], [184, 80, 138],
  [139, 115, 15], [117, 103, 199], [5, 129, 139], [194, 78, 86],
];
const ALL_HEADS = [72, 128, 176];

/** Return red, green and blue of a head; after the eighth head colors repeat, a little darker. */
function headColor(head) {
  const color = HEAD_COLORS[head % HEAD_COLORS.length];
  const darker = 0.8 ** Math.floor(head / HEAD_COLORS.length);
  return color.map((part) => Math.round(part * darker));
}

/** Write a color for CSS. */
function css(color, opacity = 1) {
  return `rgb(${color.join(' ')} / ${opacity.toFixed(3)})`;
}
