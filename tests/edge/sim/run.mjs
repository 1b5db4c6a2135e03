/**
 * A seed of the simulation of the edge, in a thread of its own: requests to a Durable Object that ends at any
 * moment, with a bucket below it that is slow, fails or is away, alarms, and readers of the bucket.
 */

import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { Random } from '../../../tools/random.mjs';
import { SimBucket, SimCache, SimResponse } from './bucket.mjs';
import { History, viewOf } from './history.mjs';
import { NO_ISOLATE, Platform } from './platform.mjs';
import { ObjectStorage } from './storage.mjs';
import { Tenant } from './tenant.mjs';

/** Errors that a request may end with. */
const MAY_FAIL = ['unavailable'];
const TYPES = { bigint: 'number' };
const PREFIX = 'tenant';

class Run {
  #random;
  #platform = new Platform();
  #storage;
  #bucket;
  #cache;
  #settings;
  #history = new History();
  #plant;
  #connect;
  /** The isolate of the object, and what runs in it. */
  #object = null;
  #pending = new Set();
  /** Commits that were answered, with their positions. */
  #answers = [];
  #readers = [];
  #bell = null;
  #isRinging = false;
  #failure = null;
  story = [];
  counts = {};

  constructor(seed, plant) {
    this.#random = new Random(seed);
    this.#plant = plant;
    const random = this.#random;
    this.#settings = {
      storeMs: random.pick([0, 20, 300, 3_000]),
      latencyMs: random.pick([1, 20, 200]),
      faulty: random.pick([0, 0, 5, 20]),
      hasBlobs: random.percent(85),
      hasCache: random.percent(50),
      diskLimit: random.pick([10_000, 60_000, 2 ** 30]),
      blobLag: random.pick([0, 100, 1_000]),
    };
    this.#platform.install(new Random(seed ^ 0x7f4a7c15));
    globalThis.Response = SimResponse;
    const part = (salt) => new Random(seed ^ salt);
    this.#storage = new ObjectStorage(this.#platform, part(0x2545f491), {
      ...this.#settings,
      isAlarmLate: plant === 'alarm-late',
    });
    this.#bucket = new SimBucket(this.#platform, part(0x61c88647), this.#settings);
    this.#cache = new SimCache(part(0x3c6ef372));
    this.#storage.alarmChanged = () => this.#watchAlarm();
  }

  /** Runs everything. Throws what is wrong. */
  async all(connect) {
    this.#connect = connect;
    const steps = 20 + this.#random.below(80);
    for (let at = 0; at < steps; at++) {
      this.#act();
      await this.#run(this.#random.below(60), this.#random.pick([5, 100, 2_000]));
    }
    await this.#finish();
  }

  #count(what) {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #tell(line) {
    this.story.push(`${Math.round(this.#platform.now % 1e9)} ${line}`);
  }

  #fail(error) {
    this.#tell(String(error));
    this.#failure ??= error;
  }

  #mustBeRight() {
    if (this.#failure !== null) {
      throw this.#failure;
    }
  }

  /** Runs up to some tasks, of those that are due within some time. */
  async #run(tasks, withinMs) {
    const until = this.#platform.now + withinMs;
    for (let at = 0; at < tasks; at++) {
      const ran = await this.#platform.step(until - this.#platform.now);
      this.#mustBeRight();
      if (!ran) {
        return;
      }
    }
  }

  async #pass(ms) {
    await this.#platform.pass(ms);
    this.#mustBeRight();
  }

  #act() {
    const choice = this.#random.below(100);
    if (choice < 50) {
      const burst = this.#random.percent(30) ? 2 + this.#random.below(3) : 1;
      for (let at = 0; at < burst; at++) {
        this.#write(this.#random.pick(['add', 'add', 'amend', 'amend', 'trim']));
      }
    } else if (choice < 58) {
      this.#view();
    } else if (choice < 62) {
      this.#request('optimize', (tenant) => tenant.optimize());
    } else if (choice < 65 && this.#settings.hasBlobs) {
      this.#request('upload', (tenant) => tenant.upload());
    } else if (choice < 75) {
      this.#endObject();
    } else if (choice < 80) {
      this.#bucket.awayUntil = this.#platform.now + this.#random.pick([50, 3_000, 20_000, 60_000]);
      this.#tell('the bucket is away');
    } else if (this.#settings.hasBlobs) {
      this.#read();
    }
  }

  // The object.

  /** The object, which begins if it is not there. */
  #here() {
    if (this.#object === null) {
      const isolate = {};
      const object = { isolate, tenant: null };
      const state = this.#storage.state(isolate);
      const gate = () =>
        this.#plant === 'request-early' ? Promise.resolve() : this.#storage.gate();
      const bucket = this.#bucket.binding(isolate, gate);
      const { hasBlobs, diskLimit, blobLag } = this.#settings;
      const blobs = hasBlobs ? { blobs: { bucket, prefix: PREFIX }, diskLimit, blobLag } : {};
      const options = { state, types: TYPES, ...blobs };
      this.#tell('the object begins');
      const begin = () => {
        object.tenant = new Tenant(this.#connect, options, this.#history, this.#random);
        object.tenant.db.catch((error) => {
          // As an application does that cannot open its database.
          if (MAY_FAIL.includes(error.kind)) {
            this.#platform.later(0, () => this.#object === object && this.#endObject(), NO_ISOLATE);
          } else {
            this.#fail(error);
          }
        });
      };
      this.#platform.later(0, begin, isolate);
      this.#object = object;
      this.#count('beginnings');
    }
    return this.#object;
  }

  #endObject() {
    if (this.#object !== null) {
      const { isolate } = this.#object;
      this.#tell('the object ends');
      this.#platform.end(isolate);
      this.#pending.forEach(
        (request) => request.isolate === isolate && this.#pending.delete(request),
      );
      this.#object = null;
      this.#isRinging = false;
      this.#storage.end();
      this.#count('ends');
    }
  }

  /** Sends a request to the object. Its answer leaves when all that was written before is stored. */
  #request(what, work, answered = () => {}) {
    const object = this.#here();
    const request = { isolate: object.isolate, what };
    this.#pending.add(request);
    const run = async () => {
      try {
        const answer = await work(object.tenant);
        if (this.#plant !== 'answer-early') {
          await this.#storage.gate();
        }
        answered(answer);
        this.#count(what);
      } catch (error) {
        this.#mayFail(what, error);
      }
      this.#pending.delete(request);
    };
    this.#platform.later(0, run, object.isolate);
  }

  #mayFail(what, error) {
    if (MAY_FAIL.includes(error.kind)) {
      this.#tell(`${what}: ${error.kind}`);
      this.#count(`${what} ${error.kind}`);
    } else {
      this.#fail(error);
    }
  }

  #write(kind) {
    const write = (tenant) => tenant.write(kind);
    this.#request('write', write, ({ id, position }) => {
      this.#history.answered(id);
      const { last } = this.#history;
      this.#tell(`${kind} is answered: ${last} at ${position}`);
      this.#answers.push({ seq: this.#history.lastOf(id), position });
    });
  }

  #view() {
    const least = this.#history.last;
    const view = (tenant) => tenant.view();
    this.#request('view', view, (seen) => this.#history.check(seen, least, 'the object', true));
  }

  // Its alarm.

  #watchAlarm() {
    if (this.#bell !== null) {
      this.#platform.cancel(this.#bell);
      this.#bell = null;
    }
    const { alarm } = this.#storage;
    if (alarm !== null && !this.#isRinging) {
      this.#bell = this.#platform.later(alarm - this.#platform.now, () => this.#ring(), NO_ISOLATE);
    }
  }

  #ring() {
    const { alarm } = this.#storage;
    this.#isRinging = true;
    this.#count('alarms');
    this.#tell('the alarm rings');
    const object = this.#here();
    const run = async () => {
      try {
        await object.tenant.alarm();
        if (this.#storage.newestAlarm === alarm || this.#plant === 'alarm-once') {
          this.#storage.setAlarm(null);
        }
        await this.#storage.gate();
        this.#rung();
      } catch (error) {
        this.#mayFail('alarm', error);
        // The platform tries again.
        this.#platform.later(2_000, () => this.#object === object && this.#rung(), NO_ISOLATE);
      }
    };
    this.#platform.later(0, run, object.isolate);
  }

  #rung() {
    this.#isRinging = false;
    this.#watchAlarm();
  }

  // Readers.

  #read() {
    if (this.#readers.length === 0 || this.#random.percent(20)) {
      const isolate = {};
      const bucket = this.#bucket.binding(isolate, async () => {});
      const cache = this.#settings.hasCache ? { cache: this.#cache } : {};
      const options = { blobs: { bucket, prefix: PREFIX }, readOnly: true, types: TYPES, ...cache };
      this.#readers.push({ isolate, options, db: null, isBusy: false, n: 0 });
    }
    const reader = this.#random.pick(this.#readers);
    const answer = this.#answers.length > 0 ? this.#random.pick(this.#answers) : null;
    if (!reader.isBusy) {
      this.#readWith(reader, this.#random.percent(50) ? answer : null);
    }
    if (this.#readers.length > 3) {
      const [gone] = this.#readers.splice(this.#random.below(3), 1);
      this.#platform.end(gone.isolate);
    }
  }

  /** Looks again with a reader, after a commit that was answered if one is given. */
  #readWith(reader, answer) {
    reader.isBusy = true;
    const run = async () => {
      try {
        const isNew = reader.db === null;
        const db = (reader.db ??= await this.#connect(reader.options));
        if (answer !== null) {
          await db.waitForPosition(answer.position, { timeoutMs: 20_000 });
        } else if (!isNew) {
          await db.refresh();
        }
        const least = Math.max(reader.n, answer?.seq ?? 0);
        const seen = await viewOf(db);
        this.#history.check(seen, least, 'a reader', true);
        reader.n = seen.n;
        this.#tell(`a reader shows ${seen.n}`);
        this.#count(answer === null ? 'reads' : 'reads of positions');
      } catch (error) {
        // Nothing is uploaded yet.
        if (error.kind !== 'not_found' || reader.n > 0) {
          this.#mayFail('read', error);
        }
      }
      reader.isBusy = false;
    };
    this.#platform.later(0, run, reader.isolate);
  }

  // The end.

  /** What is stored is uploaded without a request, because of the alarm; and nothing hangs. */
  async #finish() {
    this.#bucket.settle();
    await this.#run(this.#random.below(200), 1_000);
    if (this.#random.percent(50)) {
      // The alarm has rung, and the object begins once more.
      await this.#pass(90_000);
      this.#endObject();
      this.#write('add');
      await this.#run(this.#random.below(100), this.#random.below(5_000));
    }
    if (this.#random.percent(30)) {
      // The alarm rings in vain.
      this.#bucket.awayUntil = this.#platform.now + 50_000;
      await this.#pass(45_000);
    }
    if (this.#random.percent(70)) {
      this.#endObject();
    }
    await this.#pass(150_000);
    if (this.#pending.size > 0) {
      throw new Error(`WRONG: ${[...this.#pending].map(({ what }) => what).join(', ')} hangs`);
    }
    if (this.#settings.hasBlobs && this.#storage.hasFiles) {
      await this.#mustBeUploaded();
    }
    this.#view();
    await this.#pass(60_000);
    if (this.#pending.size > 0) {
      throw new Error('WRONG: the last view hangs');
    }
    this.counts.losses = this.#storage.losses;
    this.counts.faults = this.#bucket.faults;
    this.counts.requests = this.#bucket.requests;
  }

  async #mustBeUploaded() {
    if (this.#storage.alarm !== null) {
      throw new Error('WRONG: the alarm is still set');
    }
    this.#readers.forEach(({ isolate }) => this.#platform.end(isolate));
    this.#readers = [];
    this.#read();
    await this.#pass(60_000);
    const [{ n, isBusy }] = this.#readers;
    if (isBusy) {
      throw new Error('WRONG: the last reader hangs');
    }
    const least = this.#history.last;
    if (n < least) {
      throw new Error(`WRONG: ${n} of ${least} was uploaded`);
    }
    // The object may have more only if that was never answered, and is uploaded all the same.
    this.#request(
      'view',
      (tenant) => tenant.view(),
      (seen) => {
        if (seen.n !== n) {
          this.#fail(new Error(`WRONG: the object shows ${seen.n}, and ${n} was uploaded`));
        }
      },
    );
    await this.#pass(60_000);
  }
}

const { seed, plant, script, modules } = workerData;
const run = new Run(seed, plant);
globalThis.nacreModules = modules;
let failure = null;
try {
  const { connect } = await import(pathToFileURL(script).href);
  await run.all(connect);
} catch (error) {
  failure = error.stack ?? String(error);
}
parentPort.postMessage({ seed, failure, counts: run.counts, story: run.story });
