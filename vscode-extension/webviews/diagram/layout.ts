/** DOT to SVG through the worker; only the newest wish is answered. */
import source from "worker:./worker.ts";

export interface Wanted {
  turn: number;
  dot: string;
  width: number;
  height: number;
}

interface Done {
  turn: number;
  svg?: string;
  error?: string;
}

export class Layout {
  private readonly worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  private turn = 0;

  constructor(private readonly drawn: (svg: string) => void, private readonly failed: (message: string) => void) {
    this.worker.onmessage = ({ data }: MessageEvent<Done>) => {
      if (data.turn !== this.turn) {
        return;
      }
      if (data.svg !== undefined) {
        this.drawn(data.svg);
      } else {
        this.failed(data.error ?? "the layout failed");
      }
    };
    this.worker.onerror = (event) => this.failed(event.message || "the layout worker did not start");
  }

  draw(dot: string, { clientWidth, clientHeight }: HTMLElement): void {
    this.turn += 1;
    const wanted: Wanted = { turn: this.turn, dot, width: clientWidth, height: clientHeight };
    this.worker.postMessage(wanted);
  }
}
