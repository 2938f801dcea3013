package logaccess

import (
	"fmt"
	"strings"

	"scute.dev/eventlog/embedded"
)

// Flag is the argument of the daemon that says where the Secrets are, NAMESPACE/NAME.
const Flag = "--log-access"

// field of a Secret has the token.
const field = "token"

// label is on the Secrets that the daemon makes, with the role.
const label = "scute.dev/log-access"

// shortest is how many characters a token has at least.
const shortest = 20

// Secrets are where the tokens are: in a namespace, under a common beginning of their names.
type Secrets struct{ Namespace, Name string }

// Parse reads what Flag says.
func Parse(text string) (Secrets, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Secrets{}, fmt.Errorf("%s is %q: it must be NAMESPACE/NAME", Flag, text)
	}
	return Secrets{namespace, name}, nil
}

// Of is the name of the Secret with the token of a role.
func (s Secrets) Of(role embedded.Role) string { return s.Name + "-" + string(role) }

// Token takes the token out of the data of a Secret.
func Token(data map[string][]byte) (string, error) {
	token := strings.TrimSpace(string(data[field]))
	if len(token) < shortest {
		return "", fmt.Errorf("field %s must have %d characters or more, and has %d; delete the Secret, and the daemon makes a new one", field, shortest, len(token))
	}
	return token, nil
}
