/**
 * When to ask for the prior: a moment after the cursor or the text has come to rest, one question at a time, and never
 * twice for the same line of the same text. Nothing here knows the editor, so that it is tested without one.
 */

/** A line of a text at one of its versions. */
export interface Place {
  uri: string;
  version: number;
  line: number;
}

/** Asks about a place; rejects with an `AbortError`, or anything, once the signal says so. */
export type Ask<Answer> = (place: Place, signal: AbortSignal) => Promise<Answer>;

export type Outcome<Answer> = { place: Place; answer: Answer } | { place: Place; problem: string };

/** Codes of answers that say no more than that somebody else has asked, or edited, since. */
const OVERTAKEN = [-32801, -32800, -32802];

export class Questions<Answer> {
  private timer: NodeJS.Timeout | undefined;
  private going: AbortController | undefined;
  private last = "";

  constructor(
    private readonly ask: Ask<Answer>,
    private readonly tell: (outcome: Outcome<Answer>) => void,
    private readonly pause = 600,
  ) {}

  /** The cursor is there now; undefined where there is nothing to ask about. */
  at(place: Place | undefined): void {
    const key = place ? JSON.stringify([place.uri, place.version, place.line]) : "";
    if (key === this.last) {
      return;
    }
    this.stop();
    this.last = key;
    if (place) {
      this.timer = setTimeout(() => void this.question(place), this.pause);
    }
  }

  /** Ask again, although nothing has changed: the data may have. */
  again(place: Place | undefined): void {
    this.last = "";
    this.at(place);
  }

  /** Drop what is under way. */
  stop(): void {
    clearTimeout(this.timer);
    this.going?.abort();
    this.going = undefined;
    this.last = "";
  }

  private async question(place: Place): Promise<void> {
    const going = new AbortController();
    this.going = going;
    try {
      const answer = await this.ask(place, going.signal);
      if (!going.signal.aborted) {
        this.tell({ place, answer });
      }
    } catch (error) {
      if (!going.signal.aborted && !overtaken(error)) {
        this.tell({ place, problem: error instanceof Error ? error.message : String(error) });
      }
    }
  }
}

function overtaken(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && OVERTAKEN.includes(error.code as number);
}
