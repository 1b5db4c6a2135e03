/** VitePress's own theme with the demo's fonts and colours. */

import '@fontsource-variable/instrument-sans/wght.css';
import '@fontsource/commit-mono/latin-400.css';
import DefaultTheme from 'vitepress/theme-without-fonts';
import './style.css';

export default DefaultTheme;
