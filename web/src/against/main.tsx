// Entry point of the comparison. No system is loaded before the visitor starts it.

import '@fontsource-variable/instrument-sans/wght.css';
import '@fontsource/commit-mono/latin-400.css';
import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/shell.css';
import '../styles/against.css';

import { render } from 'preact';

import { Against } from './page';

render(<Against />, document.getElementById('app')!);
