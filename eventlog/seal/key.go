package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Key signs checkpoints. It contains the private key in a function, so that formatting a Key cannot
// print the private key.
type Key struct{ private func() ed25519.PrivateKey }

func newKey(k ed25519.PrivateKey) Key { return Key{func() ed25519.PrivateKey { return k }} }

// PublicKey is a note verifier key, "scute.dev/log/<log ID>+<hash>+<base64>". It contains the ID of
// the log whose checkpoints it verifies.
type PublicKey string

// pemType is the PEM type that openssl also writes for an ed25519 key.
const pemType = "PRIVATE KEY"

var errNoKey = errors.New("there is no key")

// NewKey generates a key.
func NewKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("creating a key: %w", err)
	}
	return newKey(private), nil
}

// ParseKey parses an ed25519 key in PKCS #8 PEM. Its errors contain no part of the key.
func ParseKey(text []byte) (Key, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return Key{}, fmt.Errorf("the key is not a PEM block %q", pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, errors.New("the key is not PKCS #8")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, fmt.Errorf("the key is %T: it must be ed25519", parsed)
	}
	return newKey(private), nil
}

// PEM encodes the key in the form that ParseKey reads. The result is a secret.
func (k Key) PEM() ([]byte, error) {
	if k.private == nil {
		return nil, errNoKey
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.private())
	if err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// Public returns the public key that verifies the checkpoints of the log with this ID.
func (k Key) Public(logID string) (PublicKey, error) {
	if k.private == nil {
		return "", errNoKey
	}
	public, _ := k.private().Public().(ed25519.PublicKey)
	v, err := note.NewEd25519VerifierKey(originPrefix+logID, public)
	if err != nil {
		return "", fmt.Errorf("naming the key of log %q: %w", logID, err)
	}
	return PublicKey(v), nil
}

// ParsePublicKey parses a public key, and ignores space around it.
func ParsePublicKey(text string) (PublicKey, error) {
	k := PublicKey(strings.TrimSpace(text))
	_, err := k.verifier()
	return k, err
}

// LogID returns the ID of the log whose checkpoints the key verifies.
func (k PublicKey) LogID() string {
	name, _, _ := strings.Cut(string(k), "+")
	return strings.TrimPrefix(name, originPrefix)
}

func (k PublicKey) verifier() (note.Verifier, error) {
	v, err := note.NewVerifier(string(k))
	if err != nil {
		return nil, fmt.Errorf("the public key must be %s<log ID>+<hash>+<base64>: %w", originPrefix, err)
	}
	if !strings.HasPrefix(v.Name(), originPrefix) {
		return nil, fmt.Errorf("the public key is of %q: it must be of %s<log ID>", v.Name(), originPrefix)
	}
	return v, nil
}

func (k Key) signer(logID string) (note.Signer, error) {
	public, err := k.Public(logID)
	if err != nil {
		return nil, err
	}
	v, err := public.verifier()
	if err != nil {
		return nil, err
	}
	return signer{v, k.private}, nil
}

type signer struct {
	note.Verifier
	private func() ed25519.PrivateKey
}

func (s signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.private(), msg), nil }
