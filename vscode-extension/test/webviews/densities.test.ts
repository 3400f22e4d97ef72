// @vitest-environment jsdom
import { beforeEach, expect, it } from "vitest";
import type { SiteDensity } from "../../src/live/densities";
import type { DiagramNode } from "../../src/protocol";
import { Densities } from "../../webviews/diagram/densities";

const node = (id: string, more: Partial<DiagramNode> = {}): DiagramNode => ({
  id, kind: "site", label: id, note: "", detail: "", box: null, declared: null, shared: false, sort: "", role: "latent",
  site: null, returned: false, range: null, ranges: [], home: null, ...more,
}); // prettier-ignore
const density = (site: string, more: Partial<SiteDensity> = {}): SiteDensity => ({ site, low: -4, high: 4, shares: [0.2, 0.6, 0.2], numbers: 1, size: 1, ...more });

const groupOf = (id: string) => document.querySelector<SVGGElement>(`[id="${id}"]`);
let shown: Densities;

/** The pictures that stand in the nodes now. */
function drawn(nodes: DiagramNode[]): (string | null)[] {
  shown.draw(document, nodes, groupOf);
  return [...document.querySelectorAll(".node .density")].map((one) => one.getAttribute("aria-label"));
}

beforeEach(() => {
  document.body.innerHTML = `<svg>${["mu", "theta", "encoder", "mu2"].map((id) => `<g class="node" id="${id}"><ellipse/></g>`).join("")}<g class="edge"></g></svg>`;
  for (const shape of document.querySelectorAll("ellipse")) {
    Object.assign(shape, { getBBox: () => ({ x: 10, y: 20, width: 100, height: 40 }) });
  }
  shown = new Densities();
});

it("draws a density into each node that draws, small and once", () => {
  shown.set([density("mu"), density("theta", { numbers: 64, size: 90 }), density("z", { outside: "far" })]);
  const nodes = [node("mu"), node("theta"), node("encoder", { kind: "arrow", role: "", site: "z" })];
  drawn(nodes);
  expect(drawn(nodes)).toEqual(["mu: prior from −4 to 4", "theta: prior from −4 to 4, over 64 of its 90 numbers", "z: prior from −4 to 4"]);
  expect(groupOf("encoder")?.querySelector(".density")?.classList.contains("outside")).toBe(true);
  for (const rect of document.querySelectorAll(".density rect")) {
    expect(Number(rect.getAttribute("width"))).toBeLessThanOrEqual(50);
    expect(Number(rect.getAttribute("height"))).toBeLessThanOrEqual(20);
  }
});

it("leaves the wires as they are until there is a density, and then behind all nodes", () => {
  drawn([node("mu")]);
  expect(document.querySelector("svg")?.lastElementChild?.getAttribute("class")).toBe("edge");
  shown.set([density("mu")]);
  drawn([node("mu")]);
  expect(document.querySelector("svg")?.firstElementChild?.getAttribute("class")).toBe("edge");
});

it("draws none where two nodes have the name, and takes all away when there are none any more", () => {
  shown.set([density("mu"), density("theta")]);
  expect(drawn([node("mu"), node("theta"), node("mu2", { label: "mu" })])).toEqual(["theta: prior from −4 to 4"]);
  shown.set([]);
  expect(drawn([node("mu"), node("theta")])).toEqual([]);
});

it("says of a posterior as one types that it is one", () => {
  shown.set([density("mu", { posterior: true })]);
  expect(drawn([node("mu")])).toEqual(["mu: live posterior from −4 to 4"]);
});
