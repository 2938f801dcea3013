package domain

import (
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
)

// Actor returns an actor for display, safe for a terminal. It marks an actor that is only a client's claim.
func Actor(actor string) string {
	if eventlog.Unverified(actor) {
		return term.Clean(actor) + " (unverified)"
	}
	return term.Clean(actor)
}
