/** Commands of the server that begin in the editor: a code lens asks here first, so that questions come before runs. */
import type { Middleware } from "vscode-languageclient";
import type { DiagramPanels } from "./diagram/panel";
import type { RunRequest } from "./protocol";

interface Features {
  runs: { ask(wanted: RunRequest): unknown } | undefined;
  diagrams: Pick<DiagramPanels, "show"> | undefined;
}

export function commandMiddleware(features: () => Features): Middleware {
  return {
    executeCommand: async (command, args: unknown[], next) => {
      const { runs, diagrams } = features();
      if (command === "qvr.run" && runs) {
        return runs.ask(args[0] as RunRequest);
      }
      if (command === "qvr.diagram" && diagrams) {
        const wanted = args[0] as { uri: string; name?: string };
        return diagrams.show(wanted.uri, wanted.name);
      }
      return next(command, args);
    },
  };
}
