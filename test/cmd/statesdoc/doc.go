// Command statesdoc writes docs/design/remediation-states.md: the state machine of a remediation, made of the tables in package
// remediator.
package main
