'use strict';
// One colour a head, the same in light and dark, in lines, squares and buttons.

// Equally light, so that no head looks more important; dark enough for white, light enough for
// black. Colour never stands alone: heads have numbers and can be switched on one at a time.
const HEAD_COLOURS = [
  [50, 124, 199], [206, 98, 44], [38, 143, 92], [190, 82, 142],
  [146, 121, 16], [122, 108, 208], [6, 141, 152], [205, 83, 91],
];
const ALL_HEADS = [72, 128, 176];

/** Return red, green and blue of a head; after the eighth they come again, a little darker. */
function headColour(head) {
  const colour = HEAD_COLOURS[head % HEAD_COLOURS.length];
  const darker = 0.8 ** Math.floor(head / HEAD_COLOURS.length);
  return colour.map((part) => Math.round(part * darker));
}

/** Write a colour for CSS. */
function css(colour, opacity = 1) {
  return `rgb(${colour.join(' ')} / ${opacity.toFixed(3)})`;
}
