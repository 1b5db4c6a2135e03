//! Repeats a call that failed in a way that may pass, with longer and longer pauses of random length,
//! until its time is over; and once at once with new credentials, when those it used were refused.

use crate::failure::Failure;
use nacre_host::Error;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The attempts of one call.
pub(crate) struct Attempts {
    until: Instant,
    pause: Duration,
    /// Whether new credentials were tried.
    has_renewed: bool,
    count: u32,
}

impl Attempts {
    /// Begins the first attempt.
    pub(crate) fn new(retry_for: Duration) -> Attempts {
        let until = Instant::now() + retry_for;
        Attempts { until, pause: FIRST_PAUSE, has_renewed: false, count: 1 }
    }

    /// Waits for the time of the next attempt.
    ///
    /// Errors: that of the failure, if there is no other attempt.
    pub(crate) async fn after(&mut self, failure: Failure) -> Result<(), Error> {
        if failure.is_renewable && !self.has_renewed {
            self.has_renewed = true;
            self.count += 1;
            return Ok(());
        }
        if !failure.passes {
            return Err(failure.error);
        }
        // Between a half and the whole, so that clients that failed together do not come together again.
        let jitter = 0.5 + f64::from(rand::random::<u16>()) / f64::from(u16::MAX) / 2.0;
        let pause = self.pause.mul_f64(jitter).max(failure.retry_after.unwrap_or_default());
        if Instant::now() + pause > self.until {
            return Err(match self.count {
                1 => failure.error,
                count => failure.error.and(format!("gave up after {count} attempts")),
            });
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.count += 1;
        Ok(())
    }
}
