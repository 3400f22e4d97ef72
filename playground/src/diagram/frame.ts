/** The diagram's page: that of the VS Code extension, unchanged, in a frame of ours. */
import "./host";
import "../../../vscode-extension/webviews/diagram/main";
