/**
 * Makes a page of charts from a CSV file of trips:
 * `node ./dashboard.mjs TRIPS.csv DASHBOARD.html [DATABASE]`.
 *
 * The command `nacre` does the work: it imports the file into a database and runs the files in
 * `queries/`. This script draws their results as SVG. `NACRE` names the command if it is not in the
 * path.
 */

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

const [csv, page, database = './trips'] = process.argv.slice(2);
if (csv === undefined || page === undefined) {
  console.error('usage: node ./dashboard.mjs TRIPS.csv DASHBOARD.html [DATABASE]');
  process.exit(2);
}

const WIDTH = 640;
const BAR = 22;
const HEIGHT = 180;
const COLORS = ['#3a7f8c', '#d98e73'];

function nacre(args, input = '') {
  const command = process.env.NACRE ?? 'nacre';
  return execFileSync(command, args, { encoding: 'utf8', input, maxBuffer: 64 << 20 });
}

/** The rows of a query in `queries/`, which the command reads from its standard input. */
function ask(name) {
  const sql = fs.readFileSync(path.join(import.meta.dirname, 'queries', `${name}.sql`), 'utf8');
  return JSON.parse(nacre(['sql', database, '-', '--format', 'json'], sql));
}

const escape = (value) =>
  String(value).replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const grouped = (value) => Number(value).toLocaleString('en-US');

/** Columns side by side, stacked where a row has several values. */
function columnChart(rows, keys) {
  const most = Math.max(...rows.map((row) => keys.reduce((sum, key) => sum + row[key], 0)));
  const width = WIDTH / rows.length;
  const every = Math.ceil(rows.length / 12);
  const columns = rows.map((row, index) => {
    let bottom = HEIGHT;
    const parts = keys.map((key, at) => {
      const height = (row[key] / most) * HEIGHT;
      bottom -= height;
      const title = `${row.label}: ${grouped(row[key])} ${key}`;
      return `<rect x="${(index * width + 1).toFixed(1)}" y="${bottom.toFixed(1)}" width="${(width - 2).toFixed(1)}" height="${height.toFixed(1)}" fill="${COLORS[at]}"><title>${escape(title)}</title></rect>`;
    });
    const label =
      index % every === 0
        ? `<text x="${((index + 0.5) * width).toFixed(1)}" y="${HEIGHT + 16}" text-anchor="middle">${escape(String(row.label).replace(/^\d{4}-/, ''))}</text>`
        : '';
    return parts.join('') + label;
  });
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT + 24}">${columns.join('\n')}</svg>`;
}

/** Bars below each other, each with its name and a note. */
function barChart(rows, key, note) {
  const most = Math.max(...rows.map((row) => row[key]));
  const bars = rows.map((row, index) => {
    const y = index * (BAR + 6);
    const width = (row[key] / most) * (WIDTH - 260);
    return `<text x="0" y="${y + 16}">${escape(row.label)}</text><rect x="110" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${COLORS[0]}"/><text x="${(118 + width).toFixed(1)}" y="${y + 16}">${escape(note(row))}</text>`;
  });
  return `<svg viewBox="0 0 ${WIDTH} ${rows.length * (BAR + 6)}">${bars.join('\n')}</svg>`;
}

function card(value, name) {
  return `<div><strong>${escape(value)}</strong>${escape(name)}</div>`;
}

// A second run replaces the trips it knows, and adds the others.
nacre(['import', database, 'trip', csv, '--primary-key', 'id', '--on-duplicate', 'replace']);
const [summary] = ask('summary');
const signed = (value) => `${value < 0 ? '−' : '+'}${grouped(Math.abs(value))}`;

fs.writeFileSync(
  page,
  `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Trips</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
  h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
  .cards { display: grid; grid-template-columns: repeat(4, 1fr); gap: 1rem; }
  .cards div { border-top: 3px solid ${COLORS[0]}; padding-top: 0.5rem; font-size: 0.9rem; }
  .cards strong { display: block; font-size: 1.6rem; font-weight: 600; }
  svg { width: 100%; font-size: 12px; overflow: visible; }
  i { display: inline-block; width: 0.8em; height: 0.8em; margin-inline: 0.8em 0.3em; }
</style>
<h1>Trips</h1>
<div class="cards">
${card(grouped(summary.trips), 'trips')}
${card(`${summary.minutes} min`, 'average duration')}
${card(grouped(summary.revenue), 'revenue')}
${card(`${summary.member_percent} %`, 'by members')}
</div>
<h2>By week <i style="background:${COLORS[0]}"></i>members <i style="background:${COLORS[1]}"></i>guests</h2>
${columnChart(ask('weeks'), ['members', 'guests'])}
<h2>By hour of the day</h2>
${columnChart(ask('hours'), ['trips'])}
<h2>By station, and how many more bicycles leave than arrive</h2>
${barChart(ask('stations'), 'trips', ({ trips, surplus }) => `${grouped(trips)} (${signed(surplus)})`)}
</html>
`,
);
console.log(`${grouped(summary.trips)} trips in ${page}`);
