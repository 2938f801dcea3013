// Package conditions sets the three kstatus conditions for every controller, with texts cut to the length that the API accepts.
//
// This package never decides what is true of a resource; the resource's controller does.
package conditions
