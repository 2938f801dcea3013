package backup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
)

func newKey(t *testing.T) (private, public string) {
	t.Helper()
	k, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return k.String(), k.Recipient().String()
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNoBackupWithoutAWordAboutKeys checks that a backup needs either keys or --plaintext.
func TestNoBackupWithoutAWordAboutKeys(t *testing.T) {
	for says, k := range map[string]publicKeys{
		"--plaintext":      {},
		"cannot be used":   {Plaintext: true, Recipients: []string{"age1"}},
		"be used together": {Plaintext: true, Files: []string{"team.txt"}},
	} {
		if err := k.validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("validate(%+v) = %v, want %q", k, err, says)
		}
	}
}

func TestRecipients(t *testing.T) {
	_, a := newKey(t)
	_, b := newKey(t)
	k := publicKeys{Recipients: []string{a}, Files: []string{fileOf(t, "# the team\n\n"+b+"\n"+a+"\n")}}
	recipients, names, err := k.read()
	want := []string{a, b}
	slices.Sort(want)
	if err != nil || len(recipients) != 3 || !slices.Equal(names, want) {
		t.Errorf("got %d recipients, names %v, error %v, want names %v", len(recipients), names, err, want)
	}
}

// TestPrivateKeysAreNotShown checks that errors do not contain a private key that was passed as a public one, or is in
// a damaged file.
func TestPrivateKeysAreNotShown(t *testing.T) {
	private, _ := newKey(t)
	damaged := private[:len(private)-4]
	_, _, asFile := (&publicKeys{Files: []string{fileOf(t, "# public key: age1\n"+private+"\n")}}).read()
	if asFile == nil || !strings.Contains(asFile.Error(), "age-keygen -y") {
		t.Errorf("file of private keys: got error %v", asFile)
	}
	_, _, asKey := (&publicKeys{Recipients: []string{private}}).read()
	_, _, inFile := (&publicKeys{Files: []string{fileOf(t, private+"\n")}}).read()
	_, asIdentity := identities([]string{fileOf(t, damaged+"\n")})
	for says, err := range map[string]error{"--age-recipient": asKey, "--recipients-file": inFile, "--identity-file": asIdentity} {
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(strings.ToUpper(err.Error()), damaged[20:]) {
			t.Errorf("got error %v, want one about %s without the key", err, says)
		}
	}
}
