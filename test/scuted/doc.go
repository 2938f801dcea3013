// Package scuted runs scute's real programs against a test bed: it builds them, installs the chart on a management
// cluster, starts the daemon with the chart's ServiceAccount, kills it, and makes and follows Moves.
package scuted
