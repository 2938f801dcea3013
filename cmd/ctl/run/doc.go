// Package run holds the commands about runs: run, get, describe, watch, pause, resume, decide, migrate. A local run is
// driven in this very process, with the engine that the daemon has.
//
// What never may live here: rules of a run (package workflow), and how it looks (package show).
package run
