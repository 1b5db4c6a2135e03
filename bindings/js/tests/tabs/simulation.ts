/**
 * One simulated run: some tabs write, read, run transactions, streams and live queries, while tabs
 * are opened, closed, killed and frozen. Nothing acknowledged may be lost, nothing may run twice or
 * appear out of nowhere, and every call must end.
 */

import type { NacreError } from '../../../../worker/shared/errors.js';
import { Tab } from '../../src/tab.js';
import { World, type Context, type Planted } from './world.js';

const URL = 'opfs://simulated';
/** How long the faults go on, in milliseconds. */
const FAULTS_MS = 90_000;
/** How long a tab may make no progress without faults. */
const STUCK_MS = 20_000;

/** How a simulation is run. */
export interface Setup extends Planted {
  /** The text of inserts. One that looks like a query is a planted bug: it may be repeated. */
  insert?: string;
}

/** What came of it. */
export interface Outcome {
  problems: string[];
  acknowledged: number;
  unknown: number;
  takeovers: number;
}

type Fate = 'tried' | 'acknowledged' | 'failed' | 'unknown';

interface Client {
  tab: Tab;
  page: Context;
  /** Whether it is being closed or has ended. */
  isGone: boolean;
  /** Since when it can work, in virtual milliseconds. */
  since: number;
  live: { latest: number[]; isOver: boolean };
}

/** Runs one seed. */
export async function simulate(seed: number, setup: Setup = {}): Promise<Outcome> {
  return new Simulation(seed, setup).run();
}

class Simulation {
  readonly #world: World;
  readonly #insert: string;
  readonly #clients: Client[] = [];
  readonly #fates = new Map<number, Fate>();
  readonly #problems: string[] = [];
  #nextId = 1;
  #nextNumber = 1;
  #takeovers = 0;
  /** When a write was acknowledged last. */
  #progress = 0;
  #isEnding = false;

  constructor(seed: number, { insert = 'insert', ...planted }: Setup) {
    this.#world = new World(seed, planted);
    this.#insert = insert;
  }

  async run(): Promise<Outcome> {
    const world = this.#world;
    const tabs = world.between(2, 5);
    for (let i = 0; i < tabs; i++) {
      this.#open();
    }
    while (world.now < FAULTS_MS) {
      const until = world.now + world.between(100, 6000);
      while (world.now < until) {
        await world.run(Math.min(until, world.now + 1000));
        this.#watch();
      }
      this.#fault();
    }
    // From now on nothing goes wrong any more.
    this.#isEnding = true;
    this.#clients.filter(({ page }) => page.isFrozen).forEach(({ page }) => world.thaw(page));
    await world.run(world.now + STUCK_MS);
    await this.#probe();
    this.#compare();
    const fates = [...this.#fates.values()];
    return {
      problems: [...this.#problems, ...world.rows.violations],
      acknowledged: fates.filter((fate) => fate === 'acknowledged').length,
      unknown: fates.filter((fate) => fate === 'unknown').length,
      takeovers: this.#takeovers,
    };
  }

  #open(): void {
    const { page, host } = this.#world.page();
    const tab = new Tab(host, { url: URL, options: {} });
    const live = { latest: [], isOver: false };
    const client: Client = { tab, page, isGone: false, since: this.#world.now, live };
    this.#clients.push(client);
    tab.onChange(() => this.#takeovers++);
    tab.start().then(
      () => void Promise.all([this.#work(client), this.#follow(client)]),
      (error: NacreError) => {
        client.isGone = true;
        // A frozen tab may have the files for longer than connecting waits.
        if (error.kind !== 'in_use') {
          this.#problems.push(`connecting failed: ${error.kind} ${error.message}`);
        }
      },
    );
  }

  /** While the files are not with a frozen page, tabs must get on. */
  #watch(): void {
    const { now, rows } = this.#world;
    const isHeld = (rows.holder as Context | null)?.isFrozen === true;
    const canWork = this.#clients.some(
      ({ isGone, page, since }) =>
        !isGone && page.isAlive && !page.isFrozen && now - since > STUCK_MS,
    );
    if (isHeld || !canWork) {
      this.#progress = now;
    } else if (now - this.#progress > STUCK_MS) {
      this.#problems.push(`stuck since ${this.#progress}`);
      this.#progress = now;
    }
  }

  #fault(): void {
    const world = this.#world;
    const here = this.#clients.filter(({ isGone, page }) => !isGone && page.isAlive);
    const frozen = here.filter(({ page }) => page.isFrozen);
    const victim = here[world.between(0, here.length - 1)];
    const which = world.between(0, 9);
    if (here.length < 2 || which < 3) {
      if (here.length < 8) {
        this.#open();
      }
    } else if (which < 5) {
      world.kill(victim!.page);
    } else if (which < 6) {
      // It navigates: it is told, and is gone.
      victim!.page.standstill?.stop();
      world.kill(victim!.page);
    } else if (which < 7 && !victim!.page.isFrozen) {
      victim!.isGone = true;
      const ended = (): void => {
        victim!.tab.end();
        world.kill(victim!.page);
      };
      victim!.tab.call('close').then(ended, ended);
    } else if (frozen.length > 0 && (frozen.length > 2 || world.random() < 0.4)) {
      world.thaw(frozen[0]!.page);
      frozen[0]!.since = world.now;
    } else {
      world.freeze(victim!.page, world.random() < 0.5);
    }
  }

  /** Makes calls until the tab is gone. */
  async #work(client: Client): Promise<void> {
    const world = this.#world;
    const prepared = this.#nextNumber++;
    await client.tab.call('prepare', 0, prepared, this.#insert).catch(() => {});
    while (!client.isGone && client.page.isAlive && !this.#isEnding) {
      await world.wait(world.between(1, 400), client.page);
      const kind = world.between(0, 9);
      if (kind < 3) {
        await this.#write(client, [this.#id()], (ids) =>
          client.tab.call('execute', 0, this.#insert, ids),
        );
      } else if (kind < 5) {
        await this.#write(client, [this.#id()], (ids) => client.tab.call('run', 0, prepared, ids));
      } else if (kind < 7) {
        await this.#write(client, [this.#id(), this.#id()], (ids) =>
          this.#transaction(client, ids),
        );
      } else if (kind < 8) {
        await this.#stream(client);
      } else {
        await this.#read(client);
      }
    }
  }

  #id(): number {
    this.#fates.set(this.#nextId, 'tried');
    return this.#nextId++;
  }

  async #write(
    client: Client,
    ids: number[],
    write: (ids: number[]) => Promise<unknown>,
  ): Promise<void> {
    let fate: Fate = 'acknowledged';
    try {
      await write(ids);
    } catch (error) {
      fate = this.#failure(client, error as NacreError);
    }
    if (fate === 'acknowledged') {
      this.#progress = this.#world.now;
    }
    ids.forEach((id) => this.#fates.set(id, fate));
  }

  async #transaction({ tab }: Client, ids: number[]): Promise<void> {
    const session = this.#nextNumber++;
    const begun = tab.call('begin', session);
    begun.catch(() => {});
    for (const id of ids) {
      await tab.call('execute', session, this.#insert, [id]);
    }
    await begun;
    await tab.call('end', session, 'commit');
  }

  #failure(client: Client, error: NacreError): Fate {
    const isTyped = error.kind === 'unavailable' || error.kind === 'conflict';
    if (!isTyped && !client.isGone) {
      this.#problems.push(`a call failed with ${error.kind}: ${error.message}`);
    }
    return error.mayHaveRun ? 'unknown' : 'failed';
  }

  async #read(client: Client): Promise<void> {
    const known = [...this.#fates].filter(([, fate]) => fate === 'acknowledged');
    try {
      const { rows } = await client.tab.call('execute', 0, 'select', undefined);
      const found = new Set(rows as unknown as number[]);
      known.forEach(([id]) => found.has(id) || this.#problems.push(`${id} is lost`));
    } catch (error) {
      this.#failure(client, error as NacreError);
    }
  }

  async #stream(client: Client): Promise<void> {
    const id = this.#nextNumber++;
    try {
      await client.tab.call('stream', 0, id, 'columns', 'select', undefined);
      await this.#world.wait(this.#world.between(0, 100), client.page);
      await client.tab.call('more', id);
    } catch (error) {
      this.#failure(client, error as NacreError);
    }
  }

  async #follow(client: Client): Promise<void> {
    const id = this.#nextNumber++;
    const { live, tab } = client;
    try {
      const { result } = await tab.call('live', id, 'select', undefined);
      live.latest = result.rows as unknown as number[];
      for (;;) {
        live.latest = (await tab.call('nextLive', id)).rows as unknown as number[];
      }
    } catch (error) {
      live.isOver = true;
      if (!client.isGone && (error as NacreError).kind !== 'unavailable') {
        this.#problems.push(`a live query ended with ${(error as NacreError).kind}`);
      }
    }
  }

  /** Every tab that is left can write, and its live query sees that. */
  async #probe(): Promise<void> {
    const world = this.#world;
    this.#open();
    await world.run(world.now + STUCK_MS);
    const left = this.#clients.filter(({ isGone, page }) => !isGone && page.isAlive);
    const done = left.map(async (client) => {
      const id = this.#id();
      await this.#write(client, [id], (ids) => client.tab.call('execute', 0, this.#insert, ids));
      return this.#fates.get(id);
    });
    const probes = Promise.all(done);
    let fates: (Fate | undefined)[] = [];
    void probes.then((all) => (fates = all));
    await world.run(world.now + STUCK_MS, () => fates.length > 0);
    await world.run(world.now + 1000);
    if (fates.length === 0 || fates.some((fate) => fate !== 'acknowledged')) {
      this.#problems.push(`stuck: ${fates.join()} of ${left.length} tabs`);
    }
    const behind = left.filter(
      ({ live }) => !live.isOver && live.latest.length !== world.rows.written.size,
    );
    if (behind.length > 0) {
      this.#problems.push(`${behind.length} live queries are behind`);
    }
  }

  #compare(): void {
    const { written } = this.#world.rows;
    for (const [id, times] of written) {
      if (times > 1) {
        this.#problems.push(`${id} was written ${times} times`);
      }
      if (this.#fates.get(id) === 'failed') {
        this.#problems.push(`${id} failed, and is there`);
      }
    }
    for (const [id, fate] of this.#fates) {
      if (fate === 'acknowledged' && !written.has(id)) {
        this.#problems.push(`${id} is lost`);
      }
    }
  }
}
