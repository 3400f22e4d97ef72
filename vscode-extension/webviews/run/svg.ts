/** SVG elements in one expression, and a scale. */
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

/** Numbers between `low` and `high` as places between `from` and `to`; all in the middle where the ends are one. */
export function scale(low: number, high: number, from: number, to: number): (value: number) => number {
  return high > low ? (value) => from + ((value - low) / (high - low)) * (to - from) : () => (from + to) / 2;
}

/** Three digits, with a true minus. */
export function digits(value: number): string {
  return Number(value.toPrecision(3)).toString().replace("-", "−");
}

/** Bars of counts as one path: `x` from 0 to `width`, the highest `height` high. */
export function steps(counts: readonly number[], width: number, height: number, most = Math.max(...counts)): string {
  const wide = width / counts.length;
  const places = counts.map((count, at) => `L${(at * wide).toFixed(1)},${(height - (most ? (count / most) * height : 0)).toFixed(1)}h${wide.toFixed(1)}`);
  return `M0,${height}${places.join("")}V${height}Z`;
}
