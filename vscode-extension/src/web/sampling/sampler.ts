/** The worker that samples, one run at a time: the next one begins when the one before has ended. */
import type { Answer, Asked, Question, Replies, ToWorker } from "./request";

/** Milliseconds after which a worker that does not hear a cancel is ended. */
const PATIENCE_MS = 300;

interface Run {
  asked: Asked;
  take: (answer: Answer) => void;
}

export class Sampler {
  private worker: Promise<Worker> | undefined;
  private going: Run | undefined;
  private next: Run | undefined;

  /** `start` makes the worker, at the first run. */
  constructor(private readonly start: () => Worker | Promise<Worker>) {}

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
        void worker?.then((one) => one.terminate());
        this.worker = undefined;
        this.take({ kind: "cancelled" });
      }
    }, PATIENCE_MS);
  }

  /** What the worker answers to a question; it rejects where there is no answer. */
  async reply<K extends keyof Replies>(question: Question & { [key in K]: unknown }): Promise<Replies[K]> {
    const worker = await (this.worker ??= this.begun());
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve, reject) => {
      port1.onmessage = ({ data }: MessageEvent<{ reply: Replies[K] } | { problem: string }>) => {
        port1.close();
        if ("problem" in data) {
          reject(new Error(data.problem));
        } else {
          resolve(data.reply);
        }
      };
      worker.postMessage({ question, port: port2 } satisfies ToWorker, [port2]);
    });
  }

  /** End the worker. */
  dispose(): void {
    void this.worker?.then((one) => one.terminate());
    this.worker = this.next = this.going = undefined;
  }

  private begin(): void {
    const run = this.next;
    this.next = undefined;
    this.going = run;
    if (run) {
      this.post({ run: run.asked });
    }
  }

  private post(message: ToWorker): void {
    this.worker ??= this.begun();
    this.worker.then(
      (worker) => worker.postMessage(message),
      (error: unknown) => this.take({ kind: "problem", text: error instanceof Error ? error.message : String(error) }),
    );
  }

  private begun(): Promise<Worker> {
    const started = Promise.resolve(this.start()).then((worker) => {
      worker.onmessage = ({ data }: MessageEvent<Answer>) => started === this.worker && this.take(data);
      worker.onerror = (event) => {
        event.preventDefault();
        this.worker = undefined;
        this.take({ kind: "problem", text: event.message || "The worker that samples could not be loaded." });
      };
      return worker;
    });
    return started;
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
