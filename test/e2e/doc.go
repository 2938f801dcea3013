// Package e2e tests scute's programs end to end on two real management clusters. The chart installs
// them, and the management clusters share one in-memory cloud.
package e2e
