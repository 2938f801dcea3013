// Package lifecycle runs the six named workflows on the real stack. There are two management
// clusters on one in-memory cloud. Each run fails midway by a real cause, its process is killed,
// the cause is fixed, and the rerun has to end well with every task done once: the log is the
// witness.
package lifecycle
