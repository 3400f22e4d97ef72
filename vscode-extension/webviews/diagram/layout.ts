/** DOT to SVG through the worker; only the newest wish is answered, and a layout that is no longer wanted is ended. */
import source from "worker:./worker.ts";

/** From left to right, or from top to bottom. */
export type Direction = "LR" | "TB";

export interface Wanted {
  turn: number;
  dot: string;
  /** The same with its legend, for a file; null where there is none. */
  saved: string | null;
  /** Undefined: whichever fills the panel. */
  direction: Direction | undefined;
  width: number;
  height: number;
}

interface Done {
  turn: number;
  svg?: string;
  saved?: string;
  direction?: Direction;
  error?: string;
}

export class Layout {
  private worker: Worker | undefined;
  private turn = 0;
  private busy = false;
  private direction: Direction | undefined;

  /** `busy` hears when a layout begins and when none is under way any more. */
  constructor(
    /** The picture, and the one for a file. */
    private readonly drawn: (svg: string, saved: string) => void,
    private readonly failed: (message: string) => void,
    private readonly tellBusy: (busy: boolean) => void,
  ) {}

  /** `again`: in the direction of the layout before, so that an edit leaves things where they were. */
  draw({ dot, saved }: { dot: string; saved: string | null }, { clientWidth, clientHeight }: HTMLElement, again: boolean): void {
    if (this.busy) {
      this.end();
    }
    this.turn += 1;
    this.busy = true;
    this.tellBusy(true);
    const wanted: Wanted = { turn: this.turn, dot, saved, direction: again ? this.direction : undefined, width: clientWidth, height: clientHeight };
    this.worker ??= this.start();
    this.worker.postMessage(wanted);
  }

  /** End the layout that is under way; whether there was one. */
  cancel(): boolean {
    const was = this.busy;
    this.end();
    return was;
  }

  private start(): Worker {
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    worker.onmessage = ({ data }: MessageEvent<Done>) => {
      if (data.turn !== this.turn || !this.busy) {
        return;
      }
      this.rest();
      this.direction = data.direction ?? this.direction;
      if (data.svg !== undefined) {
        this.drawn(data.svg, data.saved ?? data.svg);
      } else {
        this.failed(data.error ?? "the layout failed");
      }
    };
    worker.onerror = (event) => {
      this.rest();
      this.failed(event.message || "the layout worker did not start");
    };
    return worker;
  }

  /** A worker cannot be interrupted: the next layout has another one. */
  private end(): void {
    if (this.busy) {
      this.worker?.terminate();
      this.worker = undefined;
      this.rest();
    }
  }

  private rest(): void {
    this.busy = false;
    this.tellBusy(false);
  }
}
