/** Opens the list and renders the page. */

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './App.js';
import { openList } from './list.js';

const root = createRoot(document.getElementById('root')!);
try {
  const db = await openList();
  root.render(
    <StrictMode>
      <App db={db} />
    </StrictMode>,
  );
} catch (error) {
  root.render(<p role="alert">{error instanceof Error ? error.message : String(error)}</p>);
}
