/** Small densities at the lower edge of the nodes that draw. */
import type { SiteDensity } from "../../src/live/densities";
import type { DiagramNode } from "../../src/protocol";
import { digits, steps, svg } from "../run/svg";

/** In the layout's points: what fits between the small print of a node and its neighbour below. */
const WIDTH = 46;
const HEIGHT = 15;
const HANGING = 8;

export class Densities {
  private known = new Map<string, SiteDensity>();

  set(densities: readonly SiteDensity[]): void {
    this.known = new Map(densities.map((one) => [one.site, one]));
  }

  /** The density of each node of a page; none where two nodes have the name, since it may be that of the other. */
  of(nodes: readonly DiagramNode[]): Map<string, SiteDensity> {
    const named = nodes.flatMap((node) => (siteOf(node) ? [[node.id, siteOf(node)] as const] : []));
    const times = (wanted: string | null) => named.filter(([, site]) => site === wanted).length;
    return new Map(named.flatMap(([id, site]) => {
      const density = this.known.get(site ?? "");
      return density && times(site) === 1 ? [[id, density] as const] : [];
    })); // prettier-ignore
  }

  /** Draw them into the groups of their nodes, in place of those that are there. */
  draw(frame: ParentNode, nodes: readonly DiagramNode[], groupOf: (id: string) => SVGGElement | null): void {
    frame.querySelectorAll(".node .density").forEach((old) => old.remove());
    const densities = this.of(nodes);
    if (densities.size > 0) {
      wiresBehind(frame);
    }
    for (const [id, density] of densities) {
      const group = groupOf(id);
      const shape = group?.querySelector<SVGGraphicsElement>("path, ellipse, polygon");
      if (group && shape) {
        group.append(picture(density, shape.getBBox()));
      }
    }
  }
}

/** What is said of a density in words. */
export function inWords({ low, high, numbers, size, posterior }: SiteDensity): string {
  const which = size > 1 ? `, over ${numbers === size ? "its" : `${numbers} of its`} ${size} numbers` : "";
  return `${posterior ? "live posterior" : "prior"} from ${digits(low)} to ${digits(high)}${which}`;
}

/** Graphviz paints wires over the nodes that come before them, and so over what hangs from a node. */
function wiresBehind(frame: ParentNode): void {
  const first = frame.querySelector("g.node");
  for (const wire of first?.parentElement?.querySelectorAll("g.edge") ?? []) {
    first?.before(wire);
  }
}

function siteOf(node: DiagramNode): string | null {
  return node.kind === "site" ? node.label : node.site;
}

function picture(density: SiteDensity, { x, y, width, height }: DOMRect): SVGGElement {
  const wide = Math.min(WIDTH, 0.7 * width);
  const place = `translate(${(x + (width - wide) / 2).toFixed(1)},${(y + height + HANGING - HEIGHT).toFixed(1)})`;
  return svg(
    "g",
    { class: density.outside ? "density outside" : "density", transform: place, role: "img", "aria-label": `${density.site}: ${inWords(density)}` },
    svg("rect", { x: -2, y: -1, width: wide + 4, height: HEIGHT + 2, rx: 2 }),
    svg("path", { d: steps(density.shares, wide, HEIGHT) }),
  );
}
