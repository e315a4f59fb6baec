// pg-boss: batches of 500, several pollers of one queue at its shortest interval.
"use strict";
const PgBoss = require("pg-boss");
const { read, told } = require("./peer.js");

const BATCH = 500;

async function main({ url, jobs, others }) {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue("ping");
  const far = new Date(Date.now() + 300 * 86400 * 1000);
  for (const [count, at] of [[others, far], [jobs, null]]) {
    for (let start = 0; start < count; start += 5000) {
      const n = Math.min(5000, count - start);
      await boss.insert(Array.from({ length: n }, () => ({
        name: "ping", data: {}, ...(at === null ? {} : { startAfter: at }),
      })));
    }
  }
  await boss.getDb?.()?.executeSql("ANALYZE");
  let began = 0;
  let done = 0;
  let finish;
  const finished = new Promise((resolve) => { finish = resolve; });
  // Fetched and completed by hand, a batch after the other: its own pollers wait half a second
  // between two batches, which would measure the waiting.
  async function drain() {
    for (;;) {
      const batch = await boss.fetch("ping", { batchSize: BATCH });
      if (batch.length === 0) {
        return;
      }
      began = began || performance.now();
      await boss.complete("ping", batch.map((job) => job.id));
      done += batch.length;
    }
  }
  await Promise.all([drain(), drain()]);
  told(done, (performance.now() - began) / 1000);
  finish();
  await finished;
  await boss.stop({ graceful: false });
}

main(read());
