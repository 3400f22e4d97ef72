/** Pan and zoom of an SVG by its viewBox; what the user chose stays when the picture changes. */

import { type Box, Minimap } from "./minimap";

export interface Zoom {
  scale: number;
  x: number;
  y: number;
}

/** Below this scale letters are too small to read (small print has 10 px in the layout); only who zooms out goes there. */
const READABLE = 0.8;

export class View {
  private svg: SVGSVGElement | undefined;
  private readonly minimap: Minimap;
  /** What is in the middle where not everything fits: the node of the cursor, else the beginning. */
  private focus: SVGGraphicsElement | undefined;
  private whole: Box = { x: 0, y: 0, width: 1, height: 1 };
  /** Centre and scale relative to the whole picture; undefined: fit. */
  private zoom: Zoom | undefined;

  constructor(private readonly frame: HTMLElement, private readonly changed: (zoom: Zoom | undefined) => void) {
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.grab(event));
    new ResizeObserver(() => this.apply()).observe(frame);
    this.minimap = new Minimap((x, y) => this.set({ ...(this.zoom ?? this.fitted()), x, y }));
  }

  restore(zoom: Zoom | undefined): void {
    this.zoom = zoom;
  }

  show(svg: SVGSVGElement): void {
    const { x, y, width, height } = svg.viewBox.baseVal;
    this.whole = { x, y, width: Math.max(width, 1), height: Math.max(height, 1) };
    this.svg = svg;
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
    this.focus = undefined;
    this.frame.replaceChildren(svg, this.minimap.element);
    this.minimap.show(svg, this.whole);
    this.apply();
  }

  fit(): void {
    this.set(undefined);
  }

  by(factor: number): void {
    const now = this.zoom ?? this.fitted();
    this.set({ ...now, scale: limited(now.scale * factor) });
  }

  /** Bring an element of the picture into sight without changing the scale. */
  reveal(element: SVGGraphicsElement): void {
    const seen = this.frame.getBoundingClientRect();
    const place = element.getBoundingClientRect();
    const inside =
      place.left >= seen.left && place.right <= seen.right && place.top >= seen.top && place.bottom <= seen.bottom;
    this.focus = element;
    if (inside) {
      return;
    }
    if (!this.zoom) {
      this.apply();
      return;
    }
    const centre = this.picture(place.left + place.width / 2, place.top + place.height / 2);
    this.set({ ...this.zoom, x: centre.x, y: centre.y });
  }

  /** Put an element in the middle where not everything fits; where all does, it is in sight anyway. */
  around(element: SVGGraphicsElement | undefined): void {
    this.focus = element;
    this.apply();
  }

  /**
   * The fit: at most 1.6 times the natural size, so that a small diagram is not blown up, and never too small to read. What
   * does not fit then is shown around the node of the cursor, else from its beginning.
   */
  private fitted(): Zoom {
    const { clientWidth, clientHeight } = this.frame;
    const { x, y, width, height } = this.whole;
    const scale = Math.max(READABLE, Math.min(clientWidth / width, clientHeight / height, 1.6));
    const middle = this.focus && this.placed(this.focus);
    return {
      scale,
      x: along(x, width, clientWidth / scale, middle?.x),
      y: along(y, height, clientHeight / scale, middle?.y),
    };
  }

  /** The middle of an element in the picture's own coordinates, whatever part of it is shown. */
  private placed(element: SVGGraphicsElement): { x: number; y: number } | undefined {
    const [shown, own] = [this.svg?.getScreenCTM(), element.getScreenCTM()];
    if (!shown || !own) {
      return undefined;
    }
    const { x, y, width, height } = element.getBBox();
    const at = new DOMPoint(x + width / 2, y + height / 2).matrixTransform(shown.inverse().multiply(own));
    return { x: at.x, y: at.y };
  }

  private apply(): void {
    const { scale, x, y } = this.zoom ?? this.fitted();
    const width = this.frame.clientWidth / scale;
    const height = this.frame.clientHeight / scale;
    if (width > 0 && height > 0) {
      this.svg?.setAttribute("viewBox", `${x - width / 2} ${y - height / 2} ${width} ${height}`);
      this.minimap.mark({ x: x - width / 2, y: y - height / 2, width, height });
    }
  }

  private set(zoom: Zoom | undefined): void {
    this.zoom = zoom;
    this.apply();
    this.changed(zoom);
  }

  private picture(clientX: number, clientY: number): { x: number; y: number } {
    const seen = this.frame.getBoundingClientRect();
    const now = this.zoom ?? this.fitted();
    return {
      x: now.x + (clientX - seen.left - seen.width / 2) / now.scale,
      y: now.y + (clientY - seen.top - seen.height / 2) / now.scale,
    };
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const now = this.zoom ?? this.fitted();
    const scale = limited(now.scale * Math.exp(-event.deltaY * 0.0015));
    const under = this.picture(event.clientX, event.clientY);
    const kept = now.scale / scale;
    this.set({ scale, x: under.x + (now.x - under.x) * kept, y: under.y + (now.y - under.y) * kept });
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0 || (event.target as Element).closest(".node, .cluster, .minimap")) {
      return;
    }
    const start = this.zoom ?? this.fitted();
    const move = (moved: PointerEvent) =>
      this.set({
        ...start,
        x: start.x - (moved.clientX - event.clientX) / start.scale,
        y: start.y - (moved.clientY - event.clientY) / start.scale,
      });
    const stop = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", stop);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop);
  }
}

/** The middle of what is seen along one axis: of all where all is seen, else around `middle`, never past the ends. */
function along(start: number, length: number, seen: number, middle: number | undefined): number {
  if (length <= seen) {
    return start + length / 2;
  }
  return Math.min(start + length - seen / 2, Math.max(start + seen / 2, middle ?? start));
}

function limited(scale: number): number {
  return Math.min(8, Math.max(0.05, scale));
}
