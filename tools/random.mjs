/** Choices from a seed. */

export class Random {
  #state;

  constructor(seed) {
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0;
  }

  bits() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** A whole number below a limit. */
  below(limit) {
    return this.bits() % limit;
  }

  percent(share) {
    return this.below(100) < share;
  }

  pick(choices) {
    return choices[this.below(choices.length)];
  }
}
