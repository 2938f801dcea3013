package logaccess

import (
	"fmt"
	"strings"

	"scute.dev/eventlog/embedded"
)

// Flag is the daemon's flag that names the Secrets, NAMESPACE/NAME.
const Flag = "--log-access"

const field = "token"

// label is the label of Secrets that the daemon creates. Its value is the role.
const label = "scute.dev/log-access"

const minTokenLength = 20

// Secrets contains the namespace of the Secrets with the tokens, and the prefix of their names.
type Secrets struct{ Namespace, Name string }

// Parse parses the value of Flag.
func Parse(text string) (Secrets, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Secrets{}, fmt.Errorf("%s is %q: it must be NAMESPACE/NAME", Flag, text)
	}
	return Secrets{namespace, name}, nil
}

// NameFor returns the name of the Secret with the token of a role.
func (s Secrets) NameFor(role embedded.Role) string { return s.Name + "-" + string(role) }

// Token returns the token in the data of a Secret.
func Token(data map[string][]byte) (string, error) {
	token := strings.TrimSpace(string(data[field]))
	if len(token) < minTokenLength {
		return "", fmt.Errorf("field %s must have %d characters or more, and has %d; delete the Secret, and the daemon creates a new one", field, minTokenLength, len(token))
	}
	return token, nil
}
