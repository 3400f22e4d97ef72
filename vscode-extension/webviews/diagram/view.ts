/** Pan and zoom of an SVG by its viewBox; what the user chose stays when the picture changes. */

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Zoom {
  scale: number;
  x: number;
  y: number;
}

export class View {
  private svg: SVGSVGElement | undefined;
  private whole: Box = { x: 0, y: 0, width: 1, height: 1 };
  /** Centre and scale relative to the whole picture; undefined: fit. */
  private zoom: Zoom | undefined;

  constructor(private readonly frame: HTMLElement, private readonly changed: (zoom: Zoom | undefined) => void) {
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.grab(event));
    new ResizeObserver(() => this.apply()).observe(frame);
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
    this.frame.replaceChildren(svg);
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
    if (inside || !this.zoom) {
      return;
    }
    const centre = this.picture(place.left + place.width / 2, place.top + place.height / 2);
    this.set({ ...this.zoom, x: centre.x, y: centre.y });
  }

  /** The fit: at most twice the natural size, so that a small diagram is not blown up. */
  private fitted(): Zoom {
    const { clientWidth, clientHeight } = this.frame;
    const scale = Math.min(clientWidth / this.whole.width, clientHeight / this.whole.height, 1.6);
    return { scale, x: this.whole.x + this.whole.width / 2, y: this.whole.y + this.whole.height / 2 };
  }

  private apply(): void {
    const { scale, x, y } = this.zoom ?? this.fitted();
    const width = this.frame.clientWidth / scale;
    const height = this.frame.clientHeight / scale;
    if (width > 0 && height > 0) {
      this.svg?.setAttribute("viewBox", `${x - width / 2} ${y - height / 2} ${width} ${height}`);
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
    if (event.button !== 0 || (event.target as Element).closest(".node, .cluster")) {
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

function limited(scale: number): number {
  return Math.min(8, Math.max(0.05, scale));
}
