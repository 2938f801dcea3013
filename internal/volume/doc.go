// Package volume works on a volume that may hang, whatever a context says: what was begun there is left behind then, so that it keeps no place
// of others, and nothing else is begun there before it has returned.
//
// What never may live here: what is written there, and how an error says it.
package volume
