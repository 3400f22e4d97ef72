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
  const step = ([1, 2, 5].find((one) => one * power >= rough) ?? 10) * power;
  const places: number[] = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    places.push(at * step);
  }
  return places;
}

/** A horizontal axis at `y`, from `from` to `to`, with round numbers under it. */
export function axis(low: number, high: number, from: number, to: number, y: number, count = 3): SVGGElement {
  const at = scale(low, high, from, to);
  const marks = ticks(low, high, count).flatMap((value) => {
    const x = at(value);
    // Letters stay inside the picture.
    const anchor = x < from + 10 ? "start" : x > to - 10 ? "end" : "middle";
    return [svg("line", { x1: x, x2: x, y1: y, y2: y + 3, class: "axis" }), svg("text", { x, y: y + 12, "text-anchor": anchor }, digits(value))];
  });
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
