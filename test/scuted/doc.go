// Package scuted installs, starts and kills scute's real programs on a test bed. It builds them,
// installs the chart, starts the daemon with the chart's ServiceAccount, and creates and follows
// Moves.
package scuted
