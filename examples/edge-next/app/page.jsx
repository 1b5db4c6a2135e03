export default function Page() {
  return (
    <main>
      The weather is at <a href="/stations">/stations</a>.
    </main>
  );
}
