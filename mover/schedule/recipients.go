package schedule

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
)

// Recipients are those of the public keys of a spec, who can read its backups. An error says what is wrong with which field, and
// nothing of what it has: that may be a private key.
func Recipients(keys []string) (recipients []age.Recipient, field string, err error) {
	for i, key := range keys {
		r, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, fmt.Sprintf("spec.encryption.recipients[%d]", i), errors.New("it is no public key of age")
		}
		recipients = append(recipients, r...)
	}
	return recipients, "", nil
}
