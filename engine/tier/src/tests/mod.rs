//! Tests with a real log over the tiers, and files in memory.

mod attach;
mod disk;
mod faults;
mod follow;
mod world;
