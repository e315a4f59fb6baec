// graphile-worker with its local queue and batched completions: the settings that it documents for
// throughput. Finished jobs are deleted: it keeps no history.
"use strict";
const { run, makeWorkerUtils } = require("graphile-worker");
const { Client } = require("pg");
const { read, told } = require("./peer.js");

const CONCURRENCY = 24;

async function main({ url, jobs, others }) {
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.migrate();
  await utils.release();
  const client = new Client({ connectionString: url });
  await client.connect();
  const add =
    "SELECT count((graphile_worker.add_job('ping', '{}', run_at => now() + $2::interval)).id)" +
    " FROM generate_series(1, $1::int)";
  for (const [count, after] of [[others, "300 days"], [jobs, "0 seconds"]]) {
    for (let start = 0; start < count; start += 10000) {
      await client.query(add, [Math.min(10000, count - start), after]);
    }
  }
  await client.query("VACUUM ANALYZE");
  let began = 0;
  let done = 0;
  const runner = await run({
    connectionString: url,
    noHandleSignals: true,
    logger: quiet(),
    taskList: {
      ping: async () => {
        began = began || performance.now();
        done += 1;
      },
    },
    preset: {
      worker: {
        concurrentJobs: CONCURRENCY,
        maxPoolSize: CONCURRENCY,
        pollInterval: 1000,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  const left =
    "SELECT count(*)::int AS n FROM (SELECT FROM graphile_worker._private_jobs" +
    " WHERE run_at <= now() LIMIT 1) one";
  while (done < jobs || (await client.query(left)).rows[0].n > 0) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  told(jobs, (performance.now() - began) / 1000);
  await runner.stop();
  await client.end();
}

function quiet() {
  const { Logger } = require("graphile-worker");
  return new Logger(() => () => {});
}

main(read());
