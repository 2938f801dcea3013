// Package tools pins the programs that make runs, in a separate module. So their dependencies never
// meet scute's. The packages below it have checks: walls of the linter, chart of the Helm chart.
//
// What never may live here: anything that a running scute needs.
package tools
