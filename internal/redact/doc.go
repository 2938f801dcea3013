// Package redact removes secrets from messages of other programs before they are stored or printed.
// What reaches the event log could never be removed.
//
// Text removes what looks like a secret by its form (keys, tokens, passwords in URLs) or by the name before it
// (password=...). Message does so for one message, shortens it, and leaves out the values of fields that an API server
// quotes. Tail does so for the last lines of an output. Name says whether a field, header or variable of a name holds a secret.
//
// What never may live here: knowledge of one kind of object, and any decision.
package redact
