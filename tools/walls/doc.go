// Package walls proves that the linter holds the walls between the floors of the architecture. A wall that a changed
// glob or a renamed folder has made blind rejects nothing, and nobody would notice: so each is shown a violation.
//
// What never may live here: a rule. Rules live in .golangci.yml.
package walls
