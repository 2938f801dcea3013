package httprequest

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBody checks that the beginning of a large response is kept, and that a text is found anywhere in its first MiB.
// Without a text, the same amount is read.
func TestBody(t *testing.T) {
	const text = "it is done"
	for _, at := range []int{0, 4090, 4096, 3*4096 - 1, 20 << 10, httpBodyLimit - len(text)} {
		for name, read := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader, "with the end": iotest.DataErrReader} {
			b, err := readBody(read(strings.NewReader(strings.Repeat("x", at)+text+strings.Repeat("y", 2<<20))), text)
			if err != nil || !b.found || !b.truncated || len(b.beginning) != httpBodyOutput {
				t.Errorf("at %d, %s: found %t, cut %t, %d kept, error %v", at, name, b.found, b.truncated, len(b.beginning), err)
			}
		}
	}
	if b, _ := readBody(strings.NewReader(strings.Repeat("x", httpBodyLimit-len(text)+1)+text), text); b.found {
		t.Error("found beyond the limit")
	}
	long := strings.Repeat("z", 9000) + "!"
	if b, _ := readBody(strings.NewReader(strings.Repeat("z", 50_000)+"!"), long); !b.found {
		t.Error("a text that is longer than a part was not found")
	}
	whole := strings.Repeat("x", httpBodyOutput)
	if b, _ := readBody(strings.NewReader(whole), ""); b.truncated || string(b.beginning) != whole || !b.found {
		t.Errorf("cut %t, %d kept", b.truncated, len(b.beginning))
	}
	from := strings.NewReader(strings.Repeat("x", httpBodyLimit+1))
	if b, _ := readBody(from, ""); !b.truncated || from.Len() != 1 {
		t.Errorf("cut %t, %d left", b.truncated, from.Len())
	}
	if _, err := readBody(iotest.TimeoutReader(from), ""); err == nil {
		t.Error("readBody of a response that ends early succeeded")
	}
}

// TestBodyKeepsTheBeginningOfALargeAnswer checks that the beginning is kept even if the request has a secret, which may
// be cut at its end.
func TestBodyKeepsTheBeginningOfALargeAnswer(t *testing.T) {
	b, err := readBody(strings.NewReader("the database is down: c4n4ry"+strings.Repeat("x", 20<<10)), "")
	if err != nil {
		t.Fatal(err)
	}
	b.removeSecrets([][]byte{[]byte("c4n4ry")})
	if !strings.HasPrefix(string(b.beginning), "the database is down: (removed)x") {
		t.Errorf("%d bytes are kept", len(b.beginning))
	}
}

// TestBodyHasNoHalfASecret checks that no part of a secret is kept where a response is cut.
func TestBodyHasNoHalfASecret(t *testing.T) {
	secret := strings.Repeat("c4n4ry", 5000)
	b, err := readBody(strings.NewReader(secret), "")
	if err != nil {
		t.Fatal(err)
	}
	b.removeSecrets([][]byte{[]byte(secret)})
	if strings.Contains(string(b.beginning), "c4n4ry") {
		t.Error("a part of a secret is kept")
	}
	if b, err = readBody(strings.NewReader(strings.Repeat("x", httpBodyOutput-6)+"_a_a_a_a"), ""); err != nil {
		t.Fatal(err)
	}
	b.removeSecrets([][]byte{[]byte("a"), []byte("_a_a_a_a")})
	if strings.Contains(string(b.beginning), "_") {
		t.Error("a part of a secret is kept after a short secret")
	}
}
