// Evaluates a flag for many users and reports outcomes; writes what it was told, one JSON object a line.
//   node test/history.mjs URL KEY COUNT OUT
import { createWriteStream } from "node:fs";
import { OpenFeature } from "@openfeature/server-sdk";
import { StagewiseProvider } from "../dist/openfeature.js";

const [url, key, count, out] = process.argv.slice(2);
const provider = new StagewiseProvider({ url, key, safe: { demo: "nothing" }, timeoutMs: 2000 });
await OpenFeature.setProviderAndWait(provider);
const flags = OpenFeature.getClient();
const history = createWriteStream(out);

async function visit(number) {
  const user = `user-${number}`;
  const context = { targetingKey: user, age: 20 + (number % 60), service: "web" };
  const { value, variant, reason, flagMetadata } = await flags.getStringDetails("demo", "nothing", context);
  const signals = { click: number % 3 === 0 ? 1 : 0, opt_out: number % 50 === 0 ? 1 : 0 };
  flags.track("demo", context, signals);
  if (!flagMetadata.logged) await new Promise((resolve) => setTimeout(resolve, 500));
  history.write(JSON.stringify({ user, value, variant, reason, metadata: flagMetadata, signals }) + "\n");
  return flagMetadata.logged;
}

let away = 0; // go on until the server answers again
for (let first = 0; first < Number(count) || away; first += 20) {
  const logged = await Promise.all(Array.from({ length: 20 }, (_, i) => visit(first + i)));
  away = logged.filter((one) => !one).length;
}
await OpenFeature.close();
history.end();
