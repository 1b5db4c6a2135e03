/**
 * The page. Each part shows a live query, and no part tells another that something changed: after a
 * change, the queries that read the table run again.
 */

import type { Database } from 'nacredb';
import { useLiveQuery } from 'nacredb-react';
import { useState, type FormEvent } from 'react';
import { add, removeBought, setBought, type Item } from './list.js';

export function App({ db }: { db: Database }) {
  const [shop, setShop] = useState('');
  return (
    <>
      <h1>Shopping</h1>
      <NewItem db={db} />
      <Shops db={db} chosen={shop} choose={setShop} />
      <Items db={db} shop={shop} />
    </>
  );
}

function NewItem({ db }: { db: Database }) {
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const { what, shop } = Object.fromEntries(new FormData(form)) as Record<string, string>;
    await add(db, what!, shop!);
    form.reset();
  }
  return (
    <form onSubmit={submit}>
      <input name="what" placeholder="What" aria-label="What" required />
      <input name="shop" placeholder="Where" aria-label="Where" required />
      <button>Add</button>
    </form>
  );
}

interface ShopsProps {
  db: Database;
  chosen: string;
  choose: (shop: string) => void;
}

function Shops({ db, chosen, choose }: ShopsProps) {
  const { rows } = useLiveQuery<{ shop: string; left: number }>(
    db,
    'select shop, count(*) filter (where not bought) as "left" from item group by shop order by shop',
  );
  return (
    <nav>
      <button aria-pressed={chosen === ''} onClick={() => choose('')}>
        All
      </button>
      {rows.map(({ shop, left }) => (
        <button key={shop} aria-pressed={chosen === shop} onClick={() => choose(shop)}>
          {shop} ({left})
        </button>
      ))}
    </nav>
  );
}

function Items({ db, shop }: { db: Database; shop: string }) {
  const { rows, loading, error } = useLiveQuery<Item>(
    db,
    "select * from item where ? in ('', shop) order by bought, id",
    [shop],
    { keepRows: true },
  );
  if (error !== undefined) {
    return <p role="alert">{String(error)}</p>;
  }
  if (rows.length === 0) {
    return <p>{loading ? 'One moment…' : 'Nothing to buy.'}</p>;
  }
  return (
    <>
      <ul>
        {rows.map(({ id, what, bought }) => (
          <li key={id}>
            <label>
              <input
                type="checkbox"
                checked={bought}
                onChange={(event) => setBought(db, id, event.currentTarget.checked)}
              />
              {bought ? <s>{what}</s> : what}
            </label>
          </li>
        ))}
      </ul>
      <button disabled={!rows.some(({ bought }) => bought)} onClick={() => removeBought(db)}>
        Remove what is bought
      </button>
    </>
  );
}
