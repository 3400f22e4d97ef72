/** The run's page: that of the VS Code extension, unchanged, in a frame of ours. */
import "../diagram/host";
import "../../../vscode-extension/webviews/run/main";

// Its charts are painted again where the class of the body changes, as it does in VS Code.
new MutationObserver(() => (document.body.className = document.documentElement.dataset["shade"] ?? "")).observe(document.documentElement, {
  attributes: true,
  attributeFilter: ["data-shade"],
});
