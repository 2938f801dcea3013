// Package tasktest helps to test task kinds.
package tasktest
