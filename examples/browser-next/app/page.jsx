import { Notes } from './notes';

export default function Page() {
  return (
    <main>
      <h1>Notes</h1>
      <Notes />
    </main>
  );
}
