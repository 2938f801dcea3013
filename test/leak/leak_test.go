package leak

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// key returns a private key in the form in which a cluster's Secret has it.
func key(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed([]byte("a seed of a key, of 32 bytes ....")[:32]))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func material(t *testing.T) *Material {
	t.Helper()
	m := &Material{}
	for name, value := range map[string]string{
		"key": key(t), "token": "abcdef.0123456789abcdef", "password": "correct horse battery staple",
		"kubeconfig": "users:\n- user:\n    token: the-token-of-the-kubeconfig\n    client-key-data: " + base64.StdEncoding.EncodeToString([]byte(key(t))) + "\n",
	} {
		m.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}, Data: map[string][]byte{"value": []byte(value), "ca.crt": []byte("not a secret at all")}})
	}
	return m
}

// TestPlanted checks that a secret in an event, a snapshot or a log line of a daemon is found, whatever surrounds it,
// and that the finding does not contain it. Text that is no secret is not found.
func TestPlanted(t *testing.T) {
	m := material(t)
	body := strings.Split(key(t), "\n")[1]
	for name, planted := range map[string]string{
		"key": "cannot parse " + key(t), "a line of a key": "cannot parse " + body, "token": "joined with abcdef.0123456789abcdef.", "password": "x" + "correct horse battery staple" + "x",
		"kubeconfig's token": "Authorization: the-token-of-the-kubeconfig", "base64": base64.StdEncoding.EncodeToString([]byte("correct horse battery staple")),
		"of nobody": "Bearer abcdefghijklmnopqrstuvwxyz", "a kubeconfig of nobody": `{"client-key-data":"x"}`,
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "blue", "eventlog-1")
		appendEvent(t, dir, planted)
		findings(t, name+" in an event", m, root, planted)
		root = t.TempDir()
		write(t, filepath.Join(root, "blue", "scuted.log"), "level=INFO msg=\""+planted+"\"\n")
		findings(t, name+" in a log line", m, root, planted)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "eventlog-1")
	appendEvent(t, dir, "nothing")
	write(t, filepath.Join(dir, "snapshots", "daemon"), "abcdef.0123456789abcdef")
	findings(t, "a snapshot", m, root, "abcdef.0123456789abcdef")

	root = t.TempDir()
	appendEvent(t, filepath.Join(root, "eventlog-1"), "Secret fleet/key, with the field value; not a secret at all; bearer tokens are not told")
	write(t, filepath.Join(root, "audit.log"), key(t)) // of an API server
	found, read, err := m.Scan(root)
	if err != nil || len(found) > 0 || read == 0 || m.Secrets() != 4 {
		t.Errorf("findings = %v in %d bytes of %d Secrets, %v; want none", found, read, m.Secrets(), err)
	}
}

// findings checks that there is a finding that does not contain the secret.
func findings(t *testing.T, what string, m *Material, root, planted string) {
	t.Helper()
	found, _, err := m.Scan(root)
	if err != nil || len(found) == 0 {
		t.Errorf("%s was not found: %v", what, err)
	}
	for _, f := range found {
		if strings.Contains(f, planted) {
			t.Errorf("%s: the finding contains the secret: %s", what, f)
		}
	}
}

// appendEvent appends an event with a text to a log.
func appendEvent(t *testing.T, dir, text string) {
	t.Helper()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	data, err := json.Marshal(map[string]string{"message": text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.failed.v1", Time: time.Now(), Actor: "daemon/test", Data: data}},
	}); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
