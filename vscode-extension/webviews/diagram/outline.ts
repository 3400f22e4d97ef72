/** The diagram as text, for readers that cannot see it: every node with what reaches it. */
import type { DiagramPage } from "../../src/protocol";
import { el } from "../dom";

export function outline(page: DiagramPage, reveal: (node: string) => void): HTMLElement[] {
  const labels = new Map(page.nodes.map((node) => [node.id, node.label]));
  const frames = new Map(page.boxes.map((box) => [box.id, box.label]));
  const items = page.nodes.map((node) => {
    const inputs = page.wires
      .filter((wire) => wire.target === node.id)
      .map((wire) => `${labels.get(wire.source) ?? wire.source} (${wire.label || wire.kind}${wire.mismatch ? `, wrong: ${wire.mismatch}` : ""})`);
    const frame = node.box === null ? undefined : frames.get(node.box);
    const words = [
      node.detail,
      ...(frame ? [`in ${frame}`] : []),
      ...(inputs.length > 0 ? [`from ${inputs.join(" and ")}`] : []),
    ];
    return el("li", {}, el("button", { click: () => reveal(node.id) }, node.label), ` ${words.filter(Boolean).join("; ")}`);
  });
  return [
    el("summary", {}, `${page.name} : ${page.type} as text, ${page.nodes.length} nodes`),
    el("ol", {}, ...items),
  ];
}
