/** The loss (or acceptance) over the steps, by uPlot. */
import uPlot from "uplot";

export interface Line {
  label: string;
  values: (number | null)[];
  colour: string;
  width: number;
  faint?: boolean;
}

export interface Mark {
  label: string;
  value: number;
}

export class Chart {
  private plot: uPlot | undefined;
  private shape = "";

  constructor(private readonly host: HTMLElement) {
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(host);
  }

  draw(steps: number[], lines: Line[], log: boolean, unit: string): void {
    // A log axis takes no values at or below zero.
    const logarithmic = log && lines.every((line) => line.values.every((value) => value === null || value > 0));
    const shape = JSON.stringify([lines.map(({ label, colour }) => [label, colour]), logarithmic, unit, theme()]);
    const data: uPlot.AlignedData = [steps, ...lines.map((line) => line.values)];
    if (shape === this.shape && this.plot) {
      this.plot.setData(data);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(lines, logarithmic, unit), data, this.host);
  }

  private options(lines: Line[], log: boolean, unit: string): uPlot.Options {
    const text = colour("--vscode-descriptionForeground");
    const grid = { stroke: colour("--vscode-editorWidget-border", "#8884"), width: 0.5 };
    const ticks = { ...grid, size: 4 };
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return {
      ...this.size(),
      legend: { live: true },
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      axes: [
        { stroke: text, grid, ticks, font, label: "step", labelFont: font, labelSize: 18, size: 34 },
        { stroke: text, grid, ticks, font, label: unit, labelFont: font, labelSize: 18, size: 52 },
      ],
      series: [
        { label: "step" },
        ...lines.map((line) => ({
          label: line.label,
          stroke: colour(line.colour),
          width: line.width,
          alpha: line.faint ? 0.45 : 1,
          points: { show: false },
          spanGaps: true,
          value: (_: uPlot, value: number | null) => (value === null ? "–" : value.toPrecision(5)),
        })),
      ],
    };
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(200, this.host.clientWidth), height: 280 };
  }
}

function theme(): string {
  return document.body.className + colour("--vscode-editor-background");
}

/** The value of a theme colour: a canvas cannot read CSS variables. */
export function colour(variable: string, otherwise = "#888"): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim() || otherwise;
}
