import { expect, it } from "vitest";
import { nodesAt } from "../src/nodes";
import type { DiagramNode } from "../src/protocol";

const range = (line: number, start: number, end: number, last = line) => ({
  start: { line, character: start },
  end: { line: last, character: end },
});
const node = (id: string, ...ranges: DiagramNode["ranges"]) => ({ id, ranges, range: ranges[0] }) as DiagramNode;
const nodes = [node("program", range(0, 0, 10, 20)), node("embed", range(3, 9, 18), range(8, 4, 13)), node("cell", range(8, 22, 26))];

it("takes the nodes of the smallest range around the cursor", () => {
  expect(nodesAt(nodes, { line: 8, character: 6 })).toEqual(["embed"]);
  expect(nodesAt(nodes, { line: 8, character: 24 })).toEqual(["cell"]);
  expect(nodesAt(nodes, { line: 12, character: 0 })).toEqual(["program"]);
});

it("takes none where the cursor stands in nothing that is drawn", () => {
  expect(nodesAt(nodes, { line: 40, character: 0 })).toEqual([]);
});
