// Package sleep waits for a duration, or until a context ends.
//
// This package never contains retries or backoffs.
package sleep
