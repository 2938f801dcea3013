// Package fact describes an event of the log in words. It is pure.
//
// What never may live here: anything that prints an event's data unread. The text is made of known fields.
package fact
