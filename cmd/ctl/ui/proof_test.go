package ui_test

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/audit"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/ui"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/seal"
	"scute.dev/ui/feed"
	"scute.dev/ui/page"
	"scute.dev/ui/uitest"
)

// sealed is a log in a folder, sealed up to an earlier commit, with the files that an auditor keeps.
type sealed struct {
	t                    *testing.T
	dir, key, checkpoint string
	size                 uint64
	read, altered        *feed.Feed
}

func newSealed(t *testing.T) *sealed {
	t.Helper()
	s := &sealed{t: t, dir: filepath.Join(t.TempDir(), "log"), read: uitest.Feed(t), altered: uitest.Feed(t)}
	s.key, s.checkpoint = filepath.Join(t.TempDir(), "scute.pub"), filepath.Join(t.TempDir(), "checkpoint")
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: s.dir})
	s.must(err)
	uitest.Histories(t, log, "../../..", "rolled-back", "two-of-five")
	key, err := seal.NewKey()
	s.must(err)
	sealer, err := seal.OpenSealer(t.TempDir(), log, key)
	s.must(err)
	c, signed, err := sealer.Seal(t.Context())
	s.must(err)
	s.must(sealer.Close())
	s.size = c.Size
	public, err := key.Public(log.ID())
	s.must(err)
	s.must(os.WriteFile(s.key, []byte(public), 0o600))
	s.must(os.WriteFile(s.checkpoint, signed, 0o600))
	uitest.Histories(t, log, "../../..", "decided-to-retry")
	_, err = log.Replay(t.Context(), 0, s.read.Apply)
	s.must(err)
	uitest.Fill(t, s.altered, log) // with other times
	s.must(log.Close())
	return s
}

func (s *sealed) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// get requests an address of the pages of a feed.
func (s *sealed) get(f *feed.Feed, local bool, key, checkpoint, address string) (int, string) {
	s.t.Helper()
	flags := connect.New()
	flags.Dir, flags.Local = s.dir, local
	k := &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: time.Now}, Flags: flags}
	site, err := page.New(f, k, "log")
	s.must(err)
	site.Prover = audit.NewProver(k, key, checkpoint, "")
	h, err := ui.NewHandler(site, f, nil, "secret", "127.0.0.1:4711")
	s.must(err)
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://127.0.0.1:4711"+address, http.NoBody)
	r.Header.Set("Cookie", "scute-ui-4711=secret")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// scutectl runs a command.
func (s *sealed) scutectl(args ...string) (int, string) {
	var out bytes.Buffer
	env := &cli.Env{Out: &out, Err: &out, Now: time.Now, Name: "scutectl", Getenv: func(string) string { return "" }, Size: func(any) (int, int, bool) { return 0, 0, false }}
	code := app.Run(s.t.Context(), env, args)
	return code, out.String()
}

// TestProofs checks that the pages show the proof of a commit that `audit prove` writes, and that `audit check` accepts
// it with only the public key.
func TestProofs(t *testing.T) {
	s := newSealed(t)
	for _, seq := range []uint64{1, 7, s.size} {
		address := fmt.Sprintf("/proof?commit=%d", seq)
		if _, event := s.get(s.read, false, s.key, s.checkpoint, fmt.Sprintf("/event?at=%d", seq)); !strings.Contains(event, address) {
			t.Errorf("the page of the event has no link to its proof: %s", event)
		}
		code, proof := s.get(s.read, false, s.key, s.checkpoint, address+"&as=file")
		if code != http.StatusOK {
			t.Fatalf("commit %d: %d %s", seq, code, proof)
		}
		if _, shown := s.get(s.read, false, s.key, s.checkpoint, address); !strings.Contains(html.UnescapeString(shown), proof) || !strings.Contains(shown, fmt.Sprintf("audit prove %d --key %s", seq, s.key)) {
			t.Errorf("the page does not show the proof or the command:\n%s", shown)
		}
		file := filepath.Join(t.TempDir(), page.ProofFile(seq))
		s.must(os.WriteFile(file, []byte(proof), 0o600))
		if code, said := s.scutectl("audit", "check", file, "--key", s.key); code != 0 || !strings.Contains(said, fmt.Sprintf("commit %d of log ", seq)) {
			t.Errorf("audit check: exit code %d: %s", code, said)
		}
		if code, same := s.scutectl("audit", "prove", fmt.Sprint(seq), "--log", s.dir, "--key", s.key, "--checkpoint", s.checkpoint); code != 0 || same != proof {
			t.Errorf("audit prove: exit code %d: %s\nthe page has\n%s", code, same, proof)
		}
	}
}

// TestNoProof checks that the page explains why there is no proof, and offers no file.
func TestNoProof(t *testing.T) {
	s := newSealed(t)
	for name, c := range map[string]struct {
		f               *feed.Feed
		local           bool
		key, checkpoint string
		seq             uint64
		code            int
		want            string
	}{
		"not covered":    {s.read, false, s.key, s.checkpoint, s.size + 1, http.StatusOK, "is not covered by the checkpoint, which covers 1 to"},
		"no key":         {s.read, false, "", "", 3, http.StatusOK, "--key and --checkpoint are required with --log, --nats or an export"},
		"a local run":    {s.read, true, "", "", 3, http.StatusOK, "logs of local runs are not sealed"},
		"altered":        {s.altered, false, s.key, s.checkpoint, 3, http.StatusOK, "the proof is not valid"},
		"another key":    {s.read, false, s.checkpoint, s.checkpoint, 3, http.StatusOK, "key"},
		"no such commit": {s.read, false, s.key, s.checkpoint, 9999, http.StatusNotFound, "commit 9999"},
		"not all read":   {uitest.Feed(t), false, s.key, s.checkpoint, 1, http.StatusNotFound, "the last commit is 0"},
	} {
		for _, as := range []string{"", "&as=file"} {
			code, body := s.get(c.f, c.local, c.key, c.checkpoint, fmt.Sprintf("/proof?commit=%d%s", c.seq, as))
			if code != c.code || !strings.Contains(body, c.want) || strings.Contains(body, "c2sp.org/tlog-proof") {
				t.Errorf("%s: got %d %s", name, code, body)
			}
		}
	}
	if code, body := s.get(s.read, false, s.key, s.checkpoint, "/proof?commit=x"); code != http.StatusBadRequest {
		t.Errorf("got %d %s, want StatusBadRequest", code, body)
	}
}
