// What the programs for Node share; see peer.py.
"use strict";
const { parseArgs } = require("node:util");

/** jobs are due at once; others stand beside them, far in the future. */
exports.read = function read() {
  const text = { type: "string" };
  const { values } = parseArgs({ options: { url: text, jobs: text, others: text } });
  return { url: values.url, jobs: Number(values.jobs), others: Number(values.others ?? 0) };
};

/** The last line of a peer's output is its figure. */
exports.told = function told(jobs, seconds) {
  console.log(JSON.stringify({ per_second: jobs / seconds }));
};
