// Package lifecycle runs the six named workflows on the real stack. There are two management clusters on one in-memory
// cloud. Each run fails midway for a real cause, its process is killed, and the cause is fixed. Then the run is resumed
// and must succeed with every task done once, according to the log.
package lifecycle
