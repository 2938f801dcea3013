package embedded

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
)

// storeCipher is what the server encrypts with: AES-256-GCM for keys and descriptions, AES-256-CTR for messages.
const storeCipher = server.AES

// account is the server's account that the log is in.
const account = "$G"

// shortestKey is how many bytes a key has at least: those of 32 bytes in base64, or 32 bytes as they are.
const shortestKey = 32

// ReadKey reads the key of an encrypted log from a file. Space around it is left out, so that a line of text can be a key; "" is no file
// and no key.
func ReadKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the operator's own file
	if err != nil {
		return nil, fmt.Errorf("reading the key of the event log: %w", err)
	}
	key := bytes.TrimSpace(raw)
	if len(key) < shortestKey {
		return nil, fmt.Errorf("%w: file %s has %d bytes, must have %d or more, for example of `openssl rand -base64 32`", eventlog.ErrKey, path, len(key), shortestKey)
	}
	return key, nil
}

// checkKeys fails with ErrKey if a key is not the one that the log in a folder is encrypted with, in any of its epochs. The server itself
// would pass an epoch over with a warning, or remove the messages that it cannot decrypt.
func checkKeys(dir, stream string, key []byte) error {
	folders, err := streamFolders(dir, stream)
	for _, folder := range folders {
		if err == nil {
			err = checkKey(folder, filepath.Base(folder), key)
		}
	}
	return err
}

// checkKey does that for the stream in a folder.
func checkKey(folder, stream string, key []byte) error {
	sealed, err := os.ReadFile(filepath.Join(folder, server.JetStreamMetaFileKey))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkPlain(folder, key)
	case err != nil:
		return fmt.Errorf("reading the key of the event log: %w", err)
	case len(key) == 0:
		return fmt.Errorf("%w: the log is encrypted, and no key is given; give the file with its key (--log-encryption-key-file)", eventlog.ErrKey)
	case !opens(key, stream, sealed):
		return fmt.Errorf("%w: the key is not the one that the log is encrypted with; nothing was changed", eventlog.ErrKey)
	}
	parts, err := os.ReadDir(filepath.Join(folder, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the keys of the event log: %w", err)
	}
	for _, part := range parts {
		if filepath.Ext(part.Name()) != ".blk" {
			continue
		}
		if err := checkPart(filepath.Join(folder, "msgs", part.Name()), stream, key); err != nil {
			return err
		}
	}
	return nil
}

// checkPart does that for one file with messages. An empty one may have no key yet. For one that has messages and no key any more the server
// would make another key, and lose them.
func checkPart(part, stream string, key []byte) error {
	name := strings.TrimSuffix(part, ".blk")
	sealed, err := os.ReadFile(name + ".key") //nolint:gosec // the log's own folder
	if errors.Is(err, fs.ErrNotExist) {
		if info, worse := os.Stat(part); worse == nil && info.Size() == 0 {
			return nil
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: the key of %s cannot be read: %w; nothing was changed: bring that file back, or restore the log from a backup", eventlog.ErrKey, part, err)
	case !opens(key, stream+":"+filepath.Base(name), sealed):
		return fmt.Errorf("%w: the key is not the one that %s.key is encrypted with, or that file is damaged; nothing was changed", eventlog.ErrKey, name)
	}
	return nil
}

// checkPlain refuses a key for a log that is not encrypted: the server would encrypt its files where they are, and a death in the middle
// would lose what is in them.
func checkPlain(folder string, key []byte) error {
	if len(key) == 0 {
		return nil
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil // a new log is encrypted from its first commit on
	}
	return fmt.Errorf("%w: the log is not encrypted, and a key is given; back it up, and restore the backup with the key (docs/operators.md, Encrypt the log), or give no key", eventlog.ErrKey)
}

// opens says whether a key decrypts what the server keeps one of its keys in: a nonce, and that key sealed by one that is derived from the
// key, the account and the name of what it is for.
func opens(key []byte, name string, sealed []byte) bool {
	derived := hmac.New(sha256.New, key)
	derived.Write([]byte(account))
	derived.Write([]byte(name))
	block, err := aes.NewCipher(derived.Sum(nil))
	if err != nil {
		return false
	}
	aead, err := cipher.NewGCMWithNonceSize(block, block.BlockSize())
	if err != nil || len(sealed) < aead.NonceSize() {
		return false
	}
	_, err = aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)
	return err == nil
}
