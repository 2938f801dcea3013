// Package redact makes messages of other programs fit for the log, which keeps them for ever.
//
// What never may live here: knowledge of any one program's messages.
package redact
