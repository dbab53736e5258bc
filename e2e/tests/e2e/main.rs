//! End-to-end: the real binary between real clients and a relay that misbehaves on demand. One scenario per file; each
//! test has a gateway and a sink of its own, so that all of them can run at once.

mod accounts;
mod bad_input;
mod clock_skew;
mod crash_points;
mod database_faults;
mod doubt;
mod exhausted;
mod fairness;
mod first_run;
mod galera;
mod graceful_drain;
mod happy_path;
mod hostile_peers;
mod idempotency;
mod kill_loop;
mod logs;
mod moving_house;
mod node_kill_loop;
mod nodes;
mod partial_recipients;
mod permanent_failure;
mod poison;
mod retry_then_success;
mod scheduling;
mod second_process;
mod ses;
mod suppressed;
mod tenants;
mod tls_and_auth;
