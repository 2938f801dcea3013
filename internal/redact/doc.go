// Package redact removes secrets from messages of other programs before they are stored or printed.
// What reaches the event log could never be removed.
//
// Text removes text with the form of a secret (keys, tokens, passwords in URLs) and text after the
// name of a secret (password=...). Message does so for one message, shortens it, and removes the
// values of fields that an API server quotes. Tail does so for the last lines of an output.
// IsSecretName reports whether a field, header or variable of a name contains a secret.
//
// This package never contains knowledge of one kind of object, or decisions.
package redact
