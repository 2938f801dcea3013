// Package crash kills moves of `clusterctl` and of scute at the same moments, on the real stack.
// Then it runs the command again, or starts scute's daemon again, and records the state of the
// clusters.
package crash
