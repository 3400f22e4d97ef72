/** The page of the diagram panel. */
import type { DiagramState, FromDiagram, ToDiagram } from "../../src/diagram/messages";
import type { DiagramAnswer, DiagramNode } from "../../src/protocol";
import { el, style } from "../dom";
import { Densities, inWords } from "./densities";
import css from "./diagram.css";
import { Layout } from "./layout";
import { outline } from "./outline";
import { View, type Zoom } from "./view";

interface Kept extends DiagramState {
  zoom?: Zoom;
}

const vscode = acquireVsCodeApi<Kept>();
const send = (message: FromDiagram): void => vscode.postMessage(message);

style(css);
const names = el("select", { title: "What is drawn", "aria-label": "What is drawn", change: () => send({ type: "name", name: names.value }) });
const search = el("input", { type: "search", placeholder: "Find a node", "aria-label": "Find a node", input: () => find() });
const badge = el("span", { class: "badge", role: "status", hidden: true }, "stale");
const button = (label: string, title: string, act: () => void) => el("button", { title, "aria-label": title, click: act }, label);
const frame = el("main", { class: "frame", tabindex: "0" });
const tip = el("div", { class: "tip", role: "tooltip", hidden: true });
const legend = el("p", { class: "legend", hidden: true });
const text = el("details", { class: "outline" });
const busy = el("p", { class: "busy", role: "status", hidden: true });
const problem = el("p", { class: "problem", role: "alert", hidden: true });
document.getElementById("root")?.append(
  el(
    "header",
    {},
    names,
    badge,
    el("span", { class: "space" }),
    search,
    button("−", "Zoom out", () => view.by(1 / 1.25)),
    button("+", "Zoom in", () => view.by(1.25)),
    button("Fit", "Fit the whole diagram", () => view.fit()),
    button("Export", "Export as SVG, PNG, Mermaid or DOT", () => send({ type: "save" })),
  ),
  problem,
  busy,
  frame,
  legend,
  text,
  tip,
);

let answer: DiagramAnswer | undefined;
let highlighted: string[] = [];
const densities = new Densities();
const view = new View(frame, (zoom) => keep({ zoom }));
/** A layout that takes longer says so. */
const PATIENCE_MS = 400;
let impatient = 0;
const layout = new Layout(draw, (message) => tell(`The diagram could not be laid out: ${message}`), (working) => {
  clearTimeout(impatient);
  busy.hidden = true;
  if (working) {
    impatient = setTimeout(waiting, PATIENCE_MS);
  }
});
view.restore(vscode.getState()?.zoom);
/** A panel of another shape may want the other direction; what a line of text above takes from it changes nothing. */
const OTHER_SHAPE = 120;
let laidOut = { width: 0, height: 0 };
let cancelled = false;
let resized = 0;
new ResizeObserver(() => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    const { clientWidth: width, clientHeight: height } = frame;
    const other = Math.abs(width - laidOut.width) > OTHER_SHAPE || Math.abs(height - laidOut.height) > OTHER_SHAPE;
    if (answer && other && !cancelled) {
      lay(answer, false);
    }
  }, 200);
}).observe(frame);

function lay({ dot, saved }: DiagramAnswer, again: boolean): void {
  cancelled = false;
  laidOut = { width: frame.clientWidth, height: frame.clientHeight };
  layout.draw({ dot, saved }, frame, again);
}

window.addEventListener("message", ({ data }: MessageEvent<ToDiagram>) => {
  switch (data.type) {
    case "diagram":
      show(data.answer, data.state, data.wireLabels);
      break;
    case "highlight":
      highlighted = data.nodes;
      mark(true);
      break;
    case "densities":
      densities.set(data.densities);
      weigh();
      break;
    case "problem":
      badge.hidden = answer === undefined;
      tell(data.message);
      break;
  }
});
send({ type: "ready" });

function show(next: DiagramAnswer, state: DiagramState, wireLabels: boolean): void {
  const again = answer?.name === next.name;
  if (answer && !again) {
    view.fit();
  }
  answer = next;
  keep({ ...state, name: state.name });
  badge.hidden = !next.stale;
  badge.title = "The file has errors: what is drawn is what could be typed.";
  problem.hidden = true;
  document.body.classList.toggle("no-labels", !wireLabels);
  names.replaceChildren(...next.names.map((name) => el("option", { value: name, selected: name === next.name }, name)));
  text.replaceChildren(...outline(next, (node) => send({ type: "reveal", node })));
  legend.replaceChildren(...next.legend.map(({ kind, role, text }) => el("span", {}, el("i", { class: `shape ${kind} ${role}` }), text)));
  legend.hidden = next.legend.length === 0;
  lay(next, again);
}

function cancel(): void {
  if (layout.cancel()) {
    cancelled = true;
    tell(`The layout of ${answer?.nodes.length ?? 0} nodes was cancelled.`);
  }
}

/** How much there is to draw, and a way out. */
function waiting(): void {
  const count = answer?.nodes.length ?? 0;
  const stop = el("button", { click: cancel }, "Cancel");
  busy.replaceChildren(`Laying out ${count} nodes … `, stop);
  busy.hidden = false;
}

function draw(svg: string, saved: string): void {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement as unknown as SVGSVGElement;
  parsed.setAttribute("role", "group");
  parsed.setAttribute("aria-label", `Diagram of ${answer?.name ?? "the model"}`);
  for (const title of parsed.querySelectorAll("title")) {
    title.remove(); // our own tooltip says more
  }
  for (const link of parsed.querySelectorAll("a")) {
    link.replaceWith(...link.childNodes); // tooltips make links without a target
  }
  for (const group of parsed.querySelectorAll<SVGGElement>("g.node")) {
    prepare(group);
  }
  tip.hidden = true; // the node that it speaks of is gone
  view.show(parsed);
  parsed.querySelectorAll<SVGGElement>("g.node").forEach(centre);
  weigh();
  mark(false);
  find();
  send({ type: "drawn", svg: saved });
}

/** Graphviz places the lines of a label by widths of its own: put them in the middle of what is really drawn. */
function centre(group: SVGGElement): void {
  const shape = group.querySelector<SVGGraphicsElement>("path, ellipse, polygon");
  if (!shape) {
    return;
  }
  const { x, width } = shape.getBBox();
  for (const line of group.querySelectorAll("text")) {
    line.setAttribute("text-anchor", "middle");
    line.setAttribute("x", String(x + width / 2));
  }
}

/** The small densities, if any are known. */
function weigh(): void {
  densities.draw(frame, answer?.nodes ?? [], groupOf);
}

function prepare(group: SVGGElement): void {
  const id = group.id.replace(/^node:/, "");
  const node = answer?.nodes.find((one) => one.id === id);
  if (!node) {
    return;
  }
  group.setAttribute("tabindex", "0");
  group.setAttribute("role", "button");
  group.setAttribute("aria-label", `${node.label}${node.note ? ` ${node.note}` : ""}. ${node.detail}`);
  const act = () => send(node.kind === "box" ? { type: "open", box: node.id } : { type: "reveal", node: node.id });
  group.addEventListener("click", act);
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act();
    }
  });
  group.addEventListener("pointermove", (event) => point(node, event));
  group.addEventListener("pointerleave", () => (tip.hidden = true));
}

function point(node: DiagramNode, event: PointerEvent): void {
  tip.replaceChildren(el("strong", {}, node.label), el("div", {}, node.detail));
  if (node.site) {
    tip.append(el("div", {}, `draws ${node.site}`));
  }
  const density = densities.of(answer?.nodes ?? []).get(node.id);
  if (density) {
    tip.append(el("div", {}, inWords(density)));
    if (density.outside) {
      tip.append(el("div", { class: "bad" }, density.outside));
    }
  }
  if (node.shared) {
    tip.append(el("div", { class: "dim" }, "shares its weights with other nodes"));
  }
  for (const wire of answer?.wires ?? []) {
    if (wire.target === node.id && wire.mismatch) {
      tip.append(el("div", { class: "bad" }, wire.mismatch));
      break;
    }
  }
  tip.hidden = false;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const top = Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function groupOf(id: string): SVGGElement | null {
  return frame.querySelector<SVGGElement>(`[id="node:${CSS.escape(id)}"]`);
}

function mark(reveal: boolean): void {
  for (const group of frame.querySelectorAll(".node.current")) {
    group.classList.remove("current");
  }
  const groups = highlighted.flatMap((id) => groupOf(id) ?? []);
  for (const group of groups) {
    group.classList.add("current");
    if (reveal) {
      view.reveal(group);
    }
  }
  if (!reveal) {
    view.around(groups[0]);
  }
}

function find(): void {
  const wanted = search.value.trim().toLowerCase();
  frame.classList.toggle("searching", wanted !== "");
  for (const node of answer?.nodes ?? []) {
    const hit = wanted !== "" && `${node.label} ${node.note} ${node.site ?? ""}`.toLowerCase().includes(wanted);
    groupOf(node.id)?.classList.toggle("hit", hit);
  }
}

function tell(message: string): void {
  problem.textContent = message;
  problem.hidden = false;
}

function keep(more: Partial<Kept>): void {
  vscode.setState({ ...(vscode.getState() ?? { uri: "", name: undefined, follow: true, opened: [] }), ...more });
}
