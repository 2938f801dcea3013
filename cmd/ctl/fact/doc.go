// Package fact says in words what an event of the log says in data: what happened, and to what. It is pure.
//
// What never may live here: anything that prints an event's data as it stands. Words are made of fields that are known.
package fact
