/** Pictures of the playground, light and dark: `node screenshots.mjs FOLDER`. */
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { ROOT, Session } from "./session.mjs";

const folder = path.resolve(process.argv[2] ?? path.join(ROOT, "docs/images"));
const whole = readFileSync(path.join(ROOT, "examples/bidirectional_rnn_lm.qvr"), "utf8");

for (const shade of ["light", "dark"]) {
  const session = await Session.start({ shade, size: { width: 1360, height: 760 } });
  await session.checked();
  await session.write(whole.slice(whole.indexOf("object Token")).replace("BwdHidden : Real 64", "BwdHidden : Real 32"));
  await session.page.locator("#problems button").first().click();
  await session.diagram.locator("g.edge.mismatch").first().waitFor();
  await session.page.screenshot({ path: path.join(folder, `playground-${shade}.png`) });
  await session.stop();
}
