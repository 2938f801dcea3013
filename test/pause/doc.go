// Package pause tests the Pause resource on the real stack: scute's real daemon, installed by the chart, the live controllers of
// Cluster API, and providers of the tests' own that take their time, or never answer.
package pause
