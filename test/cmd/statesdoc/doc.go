// Command statesdoc writes docs/design/remediation-states.md from the tables in package remediator.
package main
