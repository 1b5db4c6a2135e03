// Entry point: loads fonts and style sheets, renders the first screen, and starts the database.

import '@fontsource-variable/instrument-sans/wght.css';
import '@fontsource/commit-mono/latin-400.css';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/shelf.css';
import './styles/editor.css';
import './styles/results.css';
import './styles/charts.css';
import './styles/strata.css';
import './styles/files.css';
import './styles/screens.css';

import { render } from 'preact';

import { App } from './app';
import { start } from './database/session';

const place = document.getElementById('app')!;
// The bar of `index.html` was for the first paint.
place.replaceChildren();
render(<App />, place);
void start();
