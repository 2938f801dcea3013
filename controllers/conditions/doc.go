// Package conditions is how every controller tells how a resource stands: the three conditions of kstatus, and texts cut
// to what the API takes.
//
// What never may live here: what is true of a resource; its controller says so.
package conditions
