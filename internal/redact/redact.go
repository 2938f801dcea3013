package redact

import (
	"regexp"
	"strings"
)

// longest a message may be, in bytes.
const longest = 1000

// Message cuts a message to a sane length and takes out of it what looks like a key or a token. (An API server that
// refuses an object quotes the field's value.)
func Message(message string) string {
	message = regexp.MustCompile(
		`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`+ // PEM
			`|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`+ // a JSON web token
			`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b`+ // a bootstrap token
			`|[A-Za-z0-9+/=]{80,}`, // a key or a whole kubeconfig in base64
	).ReplaceAllString(message, "(removed)")
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "..."
	}
	return message
}
