// Package conditions sets the three conditions of kstatus for every controller, with texts cut to the length that the
// API accepts.
//
// What never may live here: what is true of a resource; its controller says so.
package conditions
