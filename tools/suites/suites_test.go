package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == burnArgument: // ignite starts this program again
		burn(os.Stdin)
	case os.Getenv("SUITES_TEST_PARENT") != "":
		if _, err := ignite(1); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("burning\n")
		select {}
	default:
		os.Exit(m.Run())
	}
}

// TestBurningEndsWithItsParent checks that a burning process ends with its parent, even if that is killed. The process
// keeps this test's pipe open until then.
func TestBurningEndsWithItsParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "SUITES_TEST_PARENT=yes")
	ended, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parent.ExtraFiles = []*os.File{end}
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end.Close()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	_, _ = ended.Read(make([]byte, 1)) // blocks until no process has the other end open
}

func TestBurningIsExtinguished(t *testing.T) {
	extinguish, err := ignite(2)
	if err != nil {
		t.Fatal(err)
	}
	extinguish()
}

// fake returns suites that need only a shell.
func fake(root string) []suite {
	shell := func(group, name, script string) suite {
		return suite{name: name, group: group, dir: root, command: []string{"sh", "-c", script}}
	}
	failing := shell(groupStack, "failing", `cat <<'JSON'
{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Test":"TestA/one","Output":"    a_test.go:7: it is 3, want 4\n"}
{"Action":"output","Test":"TestA/one","Output":"    --- FAIL: TestA/one (0.10s)\n"}
{"Action":"fail","Test":"TestA/one","Elapsed":0.1}
{"Action":"fail","Test":"TestA","Elapsed":0.1}
{"Action":"output","Test":"TestB","Output":"    b_test.go:9: rotation 2 of 5: took b; `+"`make test-full`"+` runs all\n"}
{"Action":"pass","Test":"TestB","Elapsed":1}
{"Action":"output","Test":"TestC","Output":"    c_test.go:9: it hangs\n"}
{"Action":"output","Output":"FAIL\n"}
no event, of the compiler
JSON
exit 1`)
	failing.events = true
	story := shell(groupAlone, "story", "for i in $(seq 100); do echo it happened $i; done; echo violations: one; exit 1")
	story.story = true
	return []suite{shell(groupChecks, "fine", "echo said by fine"), shell(groupChecks, "broken", "echo said by broken; exit 3"), failing, shell(groupStack, "other", "echo ROTATION is $ROTATION, GOFLAGS $GOFLAGS"), story}
}

func TestPerform(t *testing.T) {
	o := &options{root: t.TempDir(), lanes: 2}
	var out bytes.Buffer
	results, err := o.perform(t.Context(), fake(o.root), &out)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, r := range results {
		failed[r.suite] = r.failed
	}
	if len(results) != 5 || failed["fine"] || !failed["broken"] || !failed["failing"] || failed["other"] || !failed["story"] {
		t.Errorf("results = %+v", results)
	}
	said := out.String()
	for _, part := range []string{"said by broken\n", "--- FAIL: TestA/one (0.1 s)\n    a_test.go:7: it is 3, want 4\n", "--- FAIL: TestC (did not end)", "no event, of the compiler", "TestB: rotation 2 of 5: took b", "... 41 lines before\nit happened 42\n", "violations: one\n"} {
		if !strings.Contains(said, part) {
			t.Errorf("output does not contain %q:\n%s", part, said)
		}
	}
	for _, part := range []string{"said by fine", "it happened 41\n", "=== RUN", "FAIL: TestB"} {
		if strings.Contains(said, part) {
			t.Errorf("output contains %q:\n%s", part, said)
		}
	}
	whole, err := os.ReadFile(filepath.Join(o.root, logs, "failing.log"))
	if err != nil || !strings.Contains(string(whole), "=== RUN   TestA") {
		t.Errorf("failing.log: error %v: %s", err, whole)
	}
}

func TestRepeat(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=those")
	o := &options{root: t.TempDir(), lanes: 2, repeat: 3, day: 20785}
	results, err := o.perform(t.Context(), fake(o.root)[1:2], &bytes.Buffer{})
	if err != nil || len(results) != 3 {
		t.Fatalf("perform = %v %+v", err, results)
	}
	for i, seconds := range []int{9, 2, 4} {
		results[i].took = time.Duration(seconds) * time.Second
	}
	results[0].failed, results[1].failed = false, false
	if got, want := strings.Fields(strings.Split(repeats(results), "\n")[1])[:6], "broken 3 1 2 4 9"; strings.Join(got, " ") != want {
		t.Errorf("repeats = %v, want %s", got, want)
	}
	results, err = o.perform(t.Context(), fake(o.root)[3:4], &bytes.Buffer{})
	if err != nil || len(results) != 3 {
		t.Fatalf("perform = %v %+v", err, results)
	}
	if said := readAll(filepath.Join(o.root, logs, "other-2-of-3.log")); said != "ROTATION is 20786, GOFLAGS -tags=those -count=1\n" {
		t.Errorf("output of the second round = %q", said)
	}
	if kept, _ := filepath.Glob(filepath.Join(o.root, logs, "broken-*-of-3.log")); len(kept) != 3 {
		t.Errorf("logs = %v, want 3", kept)
	}
}

// TestStopped checks that nothing is started after the context has ended.
func TestStopped(t *testing.T) {
	o := &options{root: t.TempDir(), lanes: 1}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := o.perform(ctx, fake(o.root), &bytes.Buffer{})
	if err != nil || len(results) > 0 {
		t.Errorf("perform = %v %+v", err, results)
	}
}

func TestChoose(t *testing.T) {
	all := append(fake("."), suite{name: "soak", group: groupAlone})
	for names, want := range map[string]string{
		"checks": "fine broken", "stack fine": "fine failing other", "other": "other", "soak": "soak", "checks soak": "fine broken soak",
	} {
		chosen, err := choose(all, strings.Fields(names))
		var got []string
		for _, s := range chosen {
			got = append(got, s.name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("choose(%s) = %v, %v, want %s", names, got, err, want)
		}
	}
	for _, names := range []string{"", "nothing", "alone"} {
		if _, err := choose(all, strings.Fields(names)); err == nil {
			t.Errorf("choose(%q) succeeded, want an error", names)
		}
	}
}

// TestPart checks that the shares of a suite together have each of its tests once, that a complete run has all tests,
// and that an empty or invalid share is an error.
func TestPart(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "long"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a_test.go": "func TestMain(m *testing.M) {}\n\nfunc TestOne(t *testing.T) {\n}\nfunc helper(t *testing.T) {\n}\nfunc TestTwo(t *testing.T) {\n}\n",
		"b_test.go": "// func TestNone(t *testing.T)\nfunc TestThree(t *testing.T) {\n}\n",
		"b.go":      "func TestElsewhere(t *testing.T) {\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "long", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		shares              int
		share               string
		arguments, rotation string
	}{
		{2, "20782", "-run ^(TestOne|TestThree)$", "10392"},
		{2, "20783", "-run ^(TestTwo)$", "10392"},
		{2, "20784", "-run ^(TestOne|TestThree)$", "10393"},
		{2, "1", "-run ^(TestTwo)$", "1"},
		{2, "all", "", "all"},
		{2, "", "", ""},
		{0, "20782", "", "20782"},
	} {
		s := suite{name: "long", dir: root, shares: c.shares}
		got, err := s.part(c.share)
		if arguments := strings.Join(got.arguments, " "); err != nil || arguments != c.arguments || got.rotation != c.rotation {
			t.Errorf("%+v: part = %+v, %v", c, got, err)
		}
		if (c.arguments == "") != (got.note == "") {
			t.Errorf("%+v: note = %q", c, got.note)
		}
	}
	for _, s := range []suite{{name: "long", dir: root, shares: 9}, {name: "none", dir: root, shares: 2}} {
		for _, share := range []string{"5", "-1", "0", "today"} {
			if got, err := s.part(share); err == nil {
				t.Errorf("%+v: part(%s) = %+v, want an error", s, share, got)
			}
		}
	}
}
