package leak

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// window is the minimum length of a Secret's text that is searched for, longest how much of it is compared.
const window, longest = 16, 4096

// Material is the content of Secrets that must not occur elsewhere. The zero value is empty. It is safe for concurrent
// use.
type Material struct {
	mu      sync.Mutex
	secrets int
	// texts are by their first bytes.
	texts map[string][]text
}

type text struct{ value, origin string }

// isPublic reports whether a field of a Secret is not secret.
func isPublic(field string) bool {
	return slices.Contains([]string{"ca.crt", "tls.crt", "namespace", "format", "type"}, field)
}

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END `)
	inWords    = regexp.MustCompile(`(?m)(?:client-key-data|token|password|certificateKey):\s*"?([^\s"]+)`)
	joinToken  = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
)

// bodyOfBlock is the minimum length of a line of a private key that counts.
const bodyOfBlock = 32

// Add adds the data of a Secret.
func (m *Material) Add(s *corev1.Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.secrets++
	for field, value := range s.Data {
		if isPublic(field) {
			continue
		}
		origin := fmt.Sprintf("Secret %s/%s, field %s", s.Namespace, s.Name, field)
		for _, found := range textsOf(string(value)) {
			m.add(found, origin)
		}
	}
}

// textsOf returns the parts of a value that reveal it: the lines of private keys, tokens and passwords, or the whole
// value if it is one line. Each is also in base64.
func textsOf(value string) (texts []string) {
	for _, block := range privateKey.FindAllStringSubmatch(value, -1) {
		for _, line := range strings.Fields(block[1]) {
			if len(line) >= bodyOfBlock {
				texts = append(texts, line)
			}
		}
	}
	for _, found := range inWords.FindAllStringSubmatch(value, -1) {
		texts = append(texts, found[1])
	}
	texts = append(texts, joinToken.FindAllString(value, -1)...)
	if line := strings.TrimSpace(value); !strings.ContainsAny(line, "\n") {
		texts = append(texts, line)
	}
	if len(texts) > 0 {
		texts = append(texts, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	return texts
}

func (m *Material) add(value, origin string) {
	if len(value) < window {
		return
	}
	value = value[:min(len(value), longest)]
	if m.texts == nil {
		m.texts = make(map[string][]text)
	}
	for _, have := range m.texts[value[:window]] {
		if have.value == value {
			return
		}
	}
	m.texts[value[:window]] = append(m.texts[value[:window]], text{value, origin})
}

// Secrets returns how many times a Secret was added.
func (m *Material) Secrets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.secrets
}

// patterns match secrets of any origin.
var patterns = []struct {
	name string
	is   *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a private key in base64", regexp.MustCompile(`LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFURS|BFQyBQUklWQVRF)`)},
	{"the key of a kubeconfig", regexp.MustCompile(`client-key-data[\\"]*\s*:`)},
	{"a bearer token", regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}`)},
	{"a JSON Web Token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.`)},
}

// In returns which parts of the material are in some data, each origin and each pattern once. The result does not
// contain the secrets.
func (m *Material) In(data []byte) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := make(map[string]bool)
	say := func(what string) {
		if !said[what] {
			said[what] = true
			found = append(found, what)
		}
	}
	for i := 0; i+window <= len(data); i++ {
		for _, t := range m.texts[string(data[i:i+window])] {
			if bytes.HasPrefix(data[i:], []byte(t.value)) {
				say(t.origin)
			}
		}
	}
	for _, p := range patterns {
		if p.is.Match(data) {
			say(p.name)
		}
	}
	return found
}
