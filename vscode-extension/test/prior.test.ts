import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Outcome, type Place, Questions } from "../src/live/questions";

const at = (line: number, version = 1): Place => ({ uri: "file:///m.qvr", version, line });

interface Asked {
  place: Place;
  signal: AbortSignal;
  answer: (text: string) => void;
  refuse: (error: unknown) => void;
}

describe("questions about a prior", () => {
  let asked: Asked[];
  let told: Outcome<string>[];
  let questions: Questions<string>;

  beforeEach(() => {
    vi.useFakeTimers();
    asked = [];
    told = [];
    const ask = (place: Place, signal: AbortSignal) =>
      new Promise<string>((answer, refuse) => asked.push({ place, signal, answer, refuse }));
    questions = new Questions(ask, (outcome) => told.push(outcome), 100);
  });

  afterEach(() => vi.useRealTimers());

  it("waits until typing rests, and asks once for a line of a text", async () => {
    questions.at(at(1));
    questions.at(at(1, 2));
    await vi.advanceTimersByTimeAsync(99);
    questions.at(at(2, 2));
    await vi.advanceTimersByTimeAsync(99);
    expect(asked).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(1);
    questions.at(at(2, 2));
    await vi.advanceTimersByTimeAsync(500);
    expect(asked.map(({ place }) => place)).toEqual([at(2, 2)]);
    asked[0]?.answer("drawn");
    await vi.advanceTimersByTimeAsync(0);
    expect(told).toEqual([{ place: at(2, 2), answer: "drawn" }]);
  });

  it("drops a question when the text is edited, and what still comes of it", async () => {
    questions.at(at(1));
    await vi.advanceTimersByTimeAsync(100);
    questions.at(at(1, 2));
    expect(asked[0]?.signal.aborted).toBe(true);
    asked[0]?.answer("old");
    await vi.advanceTimersByTimeAsync(100);
    asked[1]?.answer("new");
    await vi.advanceTimersByTimeAsync(0);
    expect(told).toEqual([{ place: at(1, 2), answer: "new" }]);
  });

  it("asks nothing where there is nothing to ask about, and again when told to", async () => {
    questions.at(at(1));
    questions.at(undefined);
    await vi.advanceTimersByTimeAsync(500);
    expect(asked).toHaveLength(0);
    questions.at(at(1));
    await vi.advanceTimersByTimeAsync(100);
    questions.again(at(1));
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toHaveLength(2);
    questions.stop();
    expect(asked[1]?.signal.aborted).toBe(true);
  });

  it("tells a problem in its words, and is silent where somebody else asked since", async () => {
    questions.at(at(1));
    await vi.advanceTimersByTimeAsync(100);
    asked[0]?.refuse(Object.assign(new Error("edited"), { code: -32801 }));
    await vi.advanceTimersByTimeAsync(0);
    expect(told).toEqual([]);
    questions.at(at(2));
    await vi.advanceTimersByTimeAsync(100);
    asked[1]?.refuse(Object.assign(new Error("the program has errors"), { code: -32803 }));
    await vi.advanceTimersByTimeAsync(0);
    expect(told).toEqual([{ place: at(2), problem: "the program has errors" }]);
  });
});
