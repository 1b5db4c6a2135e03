/** Nacre's worker, and how much memory its engine has. */

import './memory';
import 'nacredb/worker';
