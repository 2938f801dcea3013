// Package kinds tests the kinds of tasks that work on any Kubernetes objects (Apply, Delete, Wait, Job) on a real API
// server: what they record, what they leave alone, and what a death in the middle leaves behind.
package kinds
