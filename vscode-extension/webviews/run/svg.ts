/** SVG elements in one expression; scales and their axes. */
type Attributes = Record<string, string | number | ((event: Event) => void)>;

export function svg<Tag extends keyof SVGElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: (Node | string)[]): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children);
  return element;
}

/** A picture with a name, at most `width` wide; it shrinks with what holds it. */
export function picture(name: string, width: number, height: number, ...children: (Node | string)[]): SVGSVGElement {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name }, ...children);
}

/** Numbers between `low` and `high` as places between `from` and `to`; all in the middle where the ends are one. */
export function scale(low: number, high: number, from: number, to: number): (value: number) => number {
  return high > low ? (value) => from + ((value - low) / (high - low)) * (to - from) : () => (from + to) / 2;
}

/** Round numbers from `low` to `high`, some `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low) || !Number.isFinite(high - low)) {
    return Number.isFinite(low) ? [low] : [];
  }
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  // the nearest by ratio: an interval of 0.9 has more than one of its numbers told
  const step = ([1, 2, 5].find((one) => one * power * Math.SQRT2 >= rough) ?? 10) * power;
  const places: number[] = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    places.push(at * step);
  }
  return places;
}

/** Pixels that a digit takes in any font, and between two numbers of an axis. */
const [DIGIT, BETWEEN] = [6.5, 3];

interface Label {
  x: number;
  anchor: "start" | "middle" | "end";
  said: string;
  left: number;
  right: number;
}

/** A number under its place; its letters stay between the ends of the axis. */
function label(value: number, x: number, from: number, to: number): Label {
  const anchor = x < from + 10 ? "start" : x > to - 10 ? "end" : "middle";
  const said = digits(value);
  const wide = said.length * DIGIT;
  const left = anchor === "start" ? x : anchor === "end" ? x - wide : x - wide / 2;
  return { x, anchor, said, left, right: left + wide };
}

/** A horizontal axis at `y`, from `from` to `to`, with some `count` round numbers under it: every second or third where all have no room. */
export function axis(low: number, high: number, from: number, to: number, y: number, count = 3): SVGGElement {
  const at = scale(low, high, from, to);
  const places = ticks(low, high, count);
  const step = (places[1] ?? Infinity) - (places[0] ?? 0);
  let labels: Label[] = [];
  for (let each = 1; each <= places.length; each += 1) {
    const kept = places.filter((value) => places.length === 1 || Math.round(value / step) % each === 0);
    labels = kept.map((value) => label(value, at(value), from, to));
    if (labels.every((one, before) => before === 0 || one.left >= (labels[before - 1]?.right ?? 0) + BETWEEN)) {
      break;
    }
  }
  const marks = labels.flatMap(({ x, anchor, said }) => [
    svg("line", { x1: x, x2: x, y1: y, y2: y + 3, class: "axis" }),
    svg("text", { x, y: y + 12, "text-anchor": anchor }, said),
  ]);
  return svg("g", {}, svg("line", { x1: from, x2: to, y1: y, y2: y, class: "axis" }), ...marks);
}

/** Three digits, with a true minus; two and a power of ten where there would be many noughts. */
export function digits(value: number): string {
  const large = Math.abs(value);
  const text = value !== 0 && (large < 1e-3 || large >= 1e5) ? value.toExponential(1) : Number(value.toPrecision(3)).toString();
  return text.replace("e+", "e").replaceAll("-", "−");
}

/** Bars of counts as one path: `x` from 0 to `width`, the highest `height` high. */
export function steps(counts: readonly number[], width: number, height: number, most = Math.max(...counts)): string {
  const wide = width / counts.length;
  const places = counts.map((count, at) => `L${(at * wide).toFixed(1)},${(height - (most ? (count / most) * height : 0)).toFixed(1)}h${wide.toFixed(1)}`);
  return `M0,${height}${places.join("")}V${height}Z`;
}
