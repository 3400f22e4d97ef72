/** The worker that samples, one run at a time: the next one begins when the one before has ended. */
import type { Answer, Asked } from "./request";

/** Milliseconds after which a worker that does not hear a cancel is ended. */
const PATIENCE_MS = 300;

interface Run {
  asked: Asked;
  take: (answer: Answer) => void;
}

export class Sampler {
  private worker: Worker | undefined;
  private going: Run | undefined;
  private next: Run | undefined;

  /** Sample; `take` hears how it goes, and how it has ended. What goes on is cancelled, and what waits is dropped. */
  run(asked: Asked, take: (answer: Answer) => void): void {
    this.next = { asked, take };
    if (this.going) {
      this.post({ cancel: true });
    } else {
      this.begin();
    }
  }

  /** End what was asked by `take`; at once, where the worker does not hear it, unless that is `gentle`. */
  cancel(take: (answer: Answer) => void, gentle = false): void {
    const { going, worker } = this;
    if (this.next?.take === take) {
      this.next = undefined;
    }
    if (going?.take !== take) {
      return;
    }
    this.post({ cancel: true });
    setTimeout(() => {
      if (!gentle && going === this.going) {
        worker?.terminate();
        this.worker = undefined;
        this.take({ kind: "cancelled" });
      }
    }, PATIENCE_MS);
  }

  private begin(): void {
    const run = this.next;
    this.next = undefined;
    this.going = run;
    if (run) {
      this.post({ run: run.asked });
    }
  }

  private post(message: { run: Asked } | { cancel: true }): void {
    this.worker ??= this.begun();
    this.worker.postMessage(message);
  }

  private begun(): Worker {
    const worker = new Worker(new URL("server/sampling.js", document.baseURI), { name: "qvr-sampling" });
    worker.onmessage = ({ data }: MessageEvent<Answer>) => worker === this.worker && this.take(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.worker = undefined;
      this.take({ kind: "problem", text: event.message || "The worker that samples could not be loaded." });
    };
    return worker;
  }

  private take(answer: Answer): void {
    const run = this.going;
    const over = answer.kind === "problem" || answer.kind === "cancelled" || answer.kind === "finished";
    if (over) {
      this.going = undefined;
    }
    run?.take(answer);
    if (over && !this.going) {
      this.begin();
    }
  }
}
