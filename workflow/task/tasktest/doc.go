// Package tasktest helps the tests of kinds of tasks.
package tasktest
