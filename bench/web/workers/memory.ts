/**
 * Says how much WebAssembly memory the engine of a worker has. To be imported before the engine: it
 * notes every memory that is made for an instance or by one, and answers on a channel that the page
 * asks.
 */

const memories = new Set<WebAssembly.Memory>();
const { Memory, Instance } = WebAssembly;

function note(instance: WebAssembly.Instance): void {
  for (const value of Object.values(instance.exports)) {
    if (value instanceof Memory) memories.add(value);
  }
}

WebAssembly.Memory = new Proxy(Memory, {
  construct(original, [descriptor]: [WebAssembly.MemoryDescriptor]) {
    const made = new original(descriptor);
    memories.add(made);
    return made;
  },
});

WebAssembly.Instance = new Proxy(Instance, {
  construct(original, given: [WebAssembly.Module, WebAssembly.Imports?]) {
    const made = new original(...given);
    note(made);
    return made;
  },
});

type Instantiated = WebAssembly.Instance | WebAssembly.WebAssemblyInstantiatedSource;

for (const name of ['instantiate', 'instantiateStreaming'] as const) {
  const original = WebAssembly[name] as (...given: unknown[]) => Promise<Instantiated>;
  WebAssembly[name] = (async (...given: unknown[]) => {
    const made = await original(...given);
    note(made instanceof Instance ? made : made.instance);
    return made;
  }) as never;
}

const channel = new BroadcastChannel('bench-memory');
channel.onmessage = ({ data }) => {
  if (data !== 'how much' || memories.size === 0) return;
  const bytes = [...memories].reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
  channel.postMessage({ bytes });
};
