// Package fact says in words what an event of the log says in data: what happened, and to what. It is pure.
//
// What never may live here: anything that prints an event's data unread. The text is made of known fields.
package fact
