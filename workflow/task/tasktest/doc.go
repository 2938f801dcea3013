// Package tasktest contains helpers for the tests of kinds of tasks.
package tasktest
