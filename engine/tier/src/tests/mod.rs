//! Tests with a real log over the tiers, and files in memory.

mod ahead;
mod apart;
mod attach;
mod branch;
mod disk;
mod faults;
mod follow;
mod history;
mod kept;
mod lease;
mod space;
mod sweep;
mod warm;
mod world;
