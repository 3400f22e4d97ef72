/** The language server as features see it: in a process beside the editor, or in a worker of a web page. */
import * as vscode from "vscode";
import type { BaseLanguageClient } from "vscode-languageclient";

export interface Serving {
  /** The running client; waits for a start that is under way. */
  running(): Promise<BaseLanguageClient | undefined>;
  /** Fires after each start, the first one and every restart. */
  readonly onDidStart: vscode.Event<unknown>;
}

/** How the server calls a document: a worker knows only files. */
export function named(client: BaseLanguageClient, uri: vscode.Uri): string {
  return client.code2ProtocolConverter.asUri(uri);
}
