package backup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
)

type publicKeys struct {
	Recipients []string
	Files      []string
	Plaintext  bool
}

func (k *publicKeys) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&k.Recipients, "age-recipient", nil, "age public key to encrypt the backup for (age1...); may be repeated")
	f.StringSliceVar(&k.Files, "recipients-file", nil, "File with age public keys, one per line; may be repeated")
	f.BoolVar(&k.Plaintext, "plaintext", false, "Do not encrypt: anybody who can read the folder gets the private keys of the clusters")
}

func (k *publicKeys) validate() error {
	given := len(k.Recipients)+len(k.Files) > 0
	switch {
	case given && k.Plaintext:
		return cli.Usagef("--plaintext cannot be used together with recipients")
	case !given && !k.Plaintext:
		return cli.Usagef("the objects contain the private keys of the clusters: encrypt them with --age-recipient or --recipients-file " +
			"(`age-keygen` creates a key), or use --plaintext")
	}
	return nil
}

// read returns the keys, and their texts without duplicates.
func (k *publicKeys) read() (recipients []age.Recipient, names []string, err error) {
	for _, name := range k.Recipients {
		r, err := age.ParseRecipients(strings.NewReader(name))
		if err != nil { // do not quote err: it may contain a private key
			return nil, nil, errors.New("--age-recipient is not an age public key (age1...)")
		}
		recipients, names = append(recipients, r...), append(names, name)
	}
	for _, file := range k.Files {
		data, err := os.ReadFile(file) //nolint:gosec // the file that the user names
		if err != nil {
			return nil, nil, fmt.Errorf("--recipients-file: %w", err)
		}
		r, err := age.ParseRecipients(bytes.NewReader(data))
		if err != nil {
			// Do not quote err: it may contain a private key.
			return nil, nil, fmt.Errorf("--recipients-file %s has a line that is not an age public key (age1...): `age-keygen -y` prints the public keys for a file of private keys", file)
		}
		recipients = append(recipients, r...)
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				names = append(names, line)
			}
		}
	}
	slices.Sort(names)
	return recipients, slices.Compact(names), nil
}

func identities(files []string) ([]age.Identity, error) {
	var all []age.Identity
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // the file that the user names
		if err != nil {
			return nil, fmt.Errorf("--identity-file: %w", err)
		}
		ids, err := age.ParseIdentities(bytes.NewReader(data))
		if err != nil { // do not quote err: it may contain a key
			return nil, errors.New("--identity-file " + file + " has no age private key (AGE-SECRET-KEY-1...)")
		}
		all = append(all, ids...)
	}
	return all, nil
}
