// Chooses the screen: the console, or a notice while there is none.

import { phase } from './database/session';
import { Console } from './screens/console';
import { Failed, InUse, Opening } from './screens/notices';
import { Loading } from './screens/loading';

export function App() {
  const now = phase.value;
  switch (now.name) {
    case 'opening':
      return <Opening />;
    case 'in_use':
      return <InUse trying={now.trying} />;
    case 'loading':
      return <Loading scale={now.scale} stop={now.stop} />;
    case 'failed':
      return <Failed failure={now.failure} />;
    case 'ready':
      return <Console />;
  }
}
