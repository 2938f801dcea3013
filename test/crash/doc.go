// Package crash kills moves of clusters in the middle, on the real stack: `clusterctl move` and a Move of scute, each at the same
// moments. Then the same command is run again, or scute's daemon is started again, and what became of the clusters is written down.
package crash
