// Package pause tests the Pause resource on the real stack, also with slow and silent providers.
package pause
