// Package e2e holds the end-to-end tests: scute's real programs, installed by the chart, on two real management
// clusters that share one in-memory cloud.
package e2e
