// Package conditions sets the conditions of kstatus, with messages shortened to the API's limit.
//
// What never may live here: what is true of a resource; its controller says so.
package conditions
