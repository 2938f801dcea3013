// Package conditions sets the conditions of kstatus, with messages shortened to the API's limit.
//
// This package never decides what is true of a resource; the resource's controller does.
package conditions
