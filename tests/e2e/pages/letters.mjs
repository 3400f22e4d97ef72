/** What is wrong with the letters of a page's pictures, of which `least` is the height in pixels; with another one than 10 they are
 * pictures that readers move and make larger.  It runs in the page, so that it stands on nothing outside of itself. */
export function letters(least = 10) {
  const CONTRAST = 4.5; // WCAG 2.2, 1.4.3
  const TOUCH = 2; // pixels that letters may stand on each other, as their boxes have room above and below
  const channels = (colour) => (/rgba?\(([^)]*)\)/.exec(colour)?.[1] ?? "0,0,0,0").split(",").map(Number);
  const light = (colour) => {
    const [red, green, blue] = channels(colour).map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, two) => {
    const [dark, bright] = [light(one), light(two)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const holds = (shape, text) => {
    const [x, y] = [(text.left + text.right) / 2, (text.top + text.bottom) / 2];
    const box = shape.getBoundingClientRect();
    return box.left < x && x < box.right && box.top < y && y < box.bottom;
  };
  const page = getComputedStyle(document.body).backgroundColor;
  const ground = channels(page)[3] === 0 ? getComputedStyle(document.documentElement).backgroundColor : page;
  const wrong = [];
  for (const picture of document.querySelectorAll("svg")) {
    const texts = [...picture.querySelectorAll("text")].filter((one) => one.getClientRects().length > 0 && one.textContent.trim() !== "");
    const boxes = texts.map((one) => one.getBoundingClientRect());
    const frame = picture.getBoundingClientRect();
    const shapes = [...picture.querySelectorAll("rect, ellipse")];
    texts.forEach((text, at) => {
      const style = getComputedStyle(text);
      const matrix = text.getScreenCTM();
      const high = Number.parseFloat(style.fontSize) * Math.hypot(matrix.a, matrix.b);
      if (high < least - 0.05) {
        wrong.push(`${text.textContent}: ${high.toFixed(1)} pixels high`);
      }
      if (least === 10 && (boxes[at].left < frame.left - 1 || boxes[at].right > frame.right + 1)) {
        wrong.push(`${text.textContent} is cut off at the edge of its picture`);
      }
      const under = shapes.filter((one) => holds(one, boxes[at]) && !(one.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_PRECEDING));
      const filled = under.map((one) => getComputedStyle(one).fill).filter((fill) => fill !== "none" && channels(fill)[3] !== 0);
      const told = contrast(style.fill, filled.at(-1) ?? ground);
      if (told < CONTRAST) {
        wrong.push(`${text.textContent}: contrast ${told.toFixed(1)} of ${style.fill} on ${filled.at(-1) ?? ground}`);
      }
      for (let other = 0; other < at; other++) {
        const [a, b] = [boxes[at], boxes[other]];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > TOUCH && down > TOUCH) {
          wrong.push(`${text.textContent} stands on ${texts[other].textContent}`);
        }
      }
    });
  }
  return wrong;
}
