// Package kinds tests the task kinds Apply, Delete, Wait and Job on a real API server. It tests
// what they record, what they do not change, and what a crash leaves behind.
package kinds
