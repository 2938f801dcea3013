// Package tools pins the programs that make runs, as tools of a separate module, so that their dependencies never
// meet scute's. Below it lie the checks of what those programs hold: walls proves the linter's, chart the Helm chart's.
//
// What never may live here: anything that a running scute needs.
package tools
