/** The whole picture in a corner, with a frame around the part that is seen; shown only where not all is. */
import { el } from "../dom";

/** A part of the picture, in its own coordinates. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const WIDTH = 190;
const HEIGHT = 120;

export class Minimap {
  readonly element = el("div", { class: "minimap", hidden: true, role: "img", "aria-label": "The whole diagram" });
  private svg: SVGSVGElement | undefined;
  private seen: SVGRectElement | undefined;
  private whole: Box = { x: 0, y: 0, width: 1, height: 1 };

  constructor(go: (x: number, y: number) => void) {
    const to = (event: PointerEvent) => {
      const { left, top, width, height } = this.element.getBoundingClientRect();
      const { x, y } = this.whole;
      go(x + ((event.clientX - left) / width) * this.whole.width, y + ((event.clientY - top) / height) * this.whole.height);
    };
    this.element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.element.setPointerCapture(event.pointerId);
      to(event);
    });
    this.element.addEventListener("pointermove", (event) => event.buttons && to(event));
  }

  /** Nodes and wires as they lie, without letters, which nobody could read. */
  show(svg: SVGSVGElement, whole: Box): void {
    this.whole = whole;
    const copy = svg.cloneNode(true) as SVGSVGElement;
    copy.querySelectorAll("text").forEach((text) => text.remove());
    copy.querySelectorAll("[id]").forEach((one) => one.removeAttribute("id"));
    copy.querySelectorAll("[tabindex]").forEach((one) => ["tabindex", "role", "aria-label"].forEach((name) => one.removeAttribute(name)));
    copy.querySelectorAll(".node").forEach((one) => one.classList.replace("node", "small"));
    copy.removeAttribute("role");
    copy.setAttribute("aria-hidden", "true");
    copy.setAttribute("viewBox", `${whole.x} ${whole.y} ${whole.width} ${whole.height}`);
    copy.setAttribute("preserveAspectRatio", "none");
    const scale = Math.min(WIDTH / whole.width, HEIGHT / whole.height);
    this.element.style.width = `${Math.max(24, whole.width * scale)}px`;
    this.element.style.height = `${Math.max(24, whole.height * scale)}px`;
    this.seen = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    this.seen.setAttribute("class", "seen");
    copy.append(this.seen);
    this.svg = copy;
    this.element.replaceChildren(copy);
  }

  /** What is seen of the picture. */
  mark(box: Box): void {
    const { x, y, width, height } = this.whole;
    const all = box.x <= x + 1 && box.y <= y + 1 && box.x + box.width >= x + width - 1 && box.y + box.height >= y + height - 1;
    this.element.hidden = all || !this.svg;
    for (const [name, value] of Object.entries(box)) {
      this.seen?.setAttribute(name, String(value));
    }
  }
}
