// Package walls proves that the linter enforces the floors of the architecture. After a changed
// glob or a renamed folder a rule could reject nothing, unnoticed. So each rule is tested with a
// violation.
//
// What never may live here: a rule. Rules live in .golangci.yml.
package walls
