/** The page around a webview's script: nothing is loaded from outside. */
import * as vscode from "vscode";

export interface Page {
  script: string;
  title: string;
  /** Whether the page lays out graphs in a worker, which it makes from a blob of its own. */
  worker?: boolean;
}

export function icons(extension: vscode.Uri): { light: vscode.Uri; dark: vscode.Uri } {
  const file = (name: string) => vscode.Uri.joinPath(extension, "icons", name);
  return { light: file("file-light.svg"), dark: file("file-dark.svg") };
}

export function html(webview: vscode.Webview, extension: vscode.Uri, page: Page): string {
  const nonce = crypto.randomUUID();
  const script = webview.asWebviewUri(vscode.Uri.joinPath(extension, "dist", "webviews", page.script));
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'wasm-unsafe-eval'`,
    "style-src 'unsafe-inline'",
    ...(page.worker ? ["worker-src blob:"] : []),
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${page.title}</title>
</head>
<body>
  <div id="root"></div>
  <script nonce="${nonce}" src="${script.toString()}"></script>
</body>
</html>`;
}
