package story

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func told(s *Story) {
	s.Title("A title")
	s.Step("First")
	time.Sleep(65 * time.Second)
	s.Say("a fact with %d numbers, and a line break\nthat is none", 2)
	s.Command("scutectl version")
	l := s.Live("machines 0/2")
	time.Sleep(3 * time.Second)
	l.Set("machines 1/2")
	time.Sleep(time.Second / 2)
	s.Hit("kill -9")
	time.Sleep(time.Second)
	l.Done()
	s.Step("Second")
	s.Good("held")
	s.Bad("failed")
	fmt.Fprint(s.Lines(), "one\n\ntwo\nthr")
}

func TestInAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		told(&Story{Out: &out})
		want := `A title

1  First
  1:05  a fact with 2 numbers, and a line break that is none
$ scutectl version
  1:05  machines 0/2
  1:08  machines 1/2
  1:08  ! kill -9

2  Second
  1:09  ✓ held
  1:09  ✗ failed
  1:09  one
  1:09  two
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screen{}
		told(&Story{Out: out, Terminal: true, Color: true, Width: func() int { return 50 }})
		want := []string{
			"A title", "", "1  First",
			"  1:05  a fact with 2 numbers, and a line break", "        that is none",
			"$ scutectl version",
			"  1:08  ! kill -9", // the live line was below it and has been cleared
			"", "2  Second", "  1:09  ✓ held", "  1:09  ✗ failed", "  1:09  one", "  1:09  two", "",
		}
		if diff := cmp.Diff(want, out.lines()); diff != "" {
			t.Error(diff)
		}
		if live := "machines 1/2  3s"; !strings.Contains(plainText(out.all.String()), live) {
			t.Errorf("the live line %q was never drawn", live)
		}
	})
}

func TestALiveLineFitsTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screen{}
		s := &Story{Out: out, Terminal: true, Width: func() int { return 24 }}
		l := s.Live("%s", strings.Repeat("long ", 20))
		time.Sleep(time.Second)
		l.Done()
		for _, drawn := range strings.Split(plainText(out.all.String()), "\r") {
			if n := len([]rune(drawn)); n > 24 {
				t.Errorf("a line has %d columns: %q", n, drawn)
			}
		}
	})
}

func TestManyTellAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Story{Out: io.Discard, Terminal: true}
		l := s.Live("live")
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				for range 20 {
					time.Sleep(20 * time.Millisecond)
					s.Say("%d", i)
					l.Set("%d", i)
				}
			})
		}
		all.Wait()
		l.Done()
	})
}

// screen is a terminal that supports only what a live line uses: a carriage return and clearing a line.
type screen struct {
	all bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) { return s.all.Write(p) }

func (s *screen) lines() []string {
	var out []string
	for _, line := range strings.Split(s.all.String(), "\n") {
		if i := strings.LastIndex(line, "\r\x1b[2K"); i >= 0 {
			line = line[i+len("\r\x1b[2K"):]
		}
		out = append(out, plainText(line))
	}
	return out
}

func plainText(s string) string {
	var b strings.Builder
	for s != "" {
		if strings.HasPrefix(s, "\x1b[") {
			s = s[strings.IndexAny(s, "mK")+1:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}
