/** Which nodes of a diagram stand for the place of the cursor. */
import type { Position, Range } from "vscode-languageclient";
import type { DiagramNode } from "./protocol";

/** Ids of the nodes whose smallest range around `position` is the smallest of all. */
export function nodesAt(nodes: readonly DiagramNode[], position: Position): string[] {
  let best = Number.POSITIVE_INFINITY;
  let found: string[] = [];
  for (const node of nodes) {
    for (const range of node.ranges) {
      if (!contains(range, position)) {
        continue;
      }
      const size = extent(range);
      if (size < best) {
        best = size;
        found = [node.id];
      } else if (size === best && !found.includes(node.id)) {
        found.push(node.id);
      }
    }
  }
  return found;
}

export function contains(range: Range, { line, character }: Position): boolean {
  const { start, end } = range;
  const afterStart = line > start.line || (line === start.line && character >= start.character);
  const beforeEnd = line < end.line || (line === end.line && character <= end.character);
  return afterStart && beforeEnd;
}

function extent({ start, end }: Range): number {
  return (end.line - start.line) * 10_000 + end.character - start.character;
}
