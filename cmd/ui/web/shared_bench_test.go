package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scute.dev/cmd/ui/access"
	"scute.dev/eventlog"
)

// BenchmarkOpenPages is what a commit costs a daemon that has 200 open pages, of users who may see the same and of users who may not: the time
// of the processors until each page was told, with that of the browsers' ends in this process, and the memory in use for each page.
func BenchmarkOpenPages(b *testing.B) {
	for _, groups := range []int{1, 20, openPages} {
		b.Run(fmt.Sprintf("%d-groups", groups), func(b *testing.B) {
			p := newPlace(b, nil)
			p.gateway.Reviewer = &access.Reviewer{Tokens: tokenReviews{p.cluster}, Access: accessReviews{p.cluster}}
			for i := range groups { // each group sees a namespace that the others do not
				p.commit(b, fmt.Sprintf("team-%d", i))
			}
			before := heap()
			open := p.open(b, groups)
			p.tell(b, open)
			memory := float64(heap()-before) / openPages
			b.ResetTimer()
			used := processors(b)
			for b.Loop() {
				p.tell(b, open)
			}
			b.ReportMetric(float64((processors(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/commit")
			b.ReportMetric(memory, "bytes/page")
		})
	}
}

const openPages = 200

// commit adds a commit about a run of a namespace.
func (p *place) commit(b *testing.B, namespace string) uint64 {
	b.Helper()
	seq := p.feed.Commits.Head() + 1
	subject := eventlog.Aggregate{Kind: eventlog.KindRun, ID: namespace + "/nightly/1"}.Subject()
	if err := p.feed.Take(eventlog.NewRecord(seq, time.Now(), subject, nil, []byte("hi"))); err != nil {
		b.Fatal(err)
	}
	return seq
}

// told is that a page was told of a commit; seq is 0 when its connection ended.
type told struct {
	page int
	seq  uint64
}

// open opens the pages, each of another user, and reads what they are told.
func (p *place) open(b *testing.B, groups int) <-chan told {
	b.Helper()
	pipes := make(pipes)
	ctx, stop := context.WithCancel(b.Context())
	server := &http.Server{Handler: p.gateway, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error)
	go func() { ended <- server.Serve(pipes) }()
	b.Cleanup(func() {
		stop()
		_ = server.Close()
		<-ended
	})
	all := make(chan told, 16*openPages)
	for i := range openPages {
		user, token := fmt.Sprint("user-", i), fmt.Sprint("token-", i)
		p.change(func() { p.users[token], p.may[user] = user, []string{"fleet", fmt.Sprintf("team-%d", i%groups)} })
		ours, theirs := net.Pipe()
		pipes <- theirs
		go func() {
			defer func() { all <- told{page: i} }()
			if _, err := fmt.Fprintf(ours, "GET /live/ HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", host, token); err != nil {
				return
			}
			for lines := bufio.NewReader(ours); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				if id, ok := strings.CutPrefix(line, "id: "); ok {
					seq, _ := strconv.ParseUint(strings.TrimSpace(id), 10, 64)
					all <- told{i, seq}
				}
			}
		}()
	}
	return all
}

// tell adds a commit that all may see, and waits until each page was told.
func (p *place) tell(b *testing.B, all <-chan told) {
	b.Helper()
	seq, done := p.commit(b, "fleet"), make(map[int]bool)
	for len(done) < openPages {
		t := <-all
		if t.seq == 0 {
			b.Fatalf("the connection of page %d ended", t.page)
		}
		if t.seq >= seq {
			done[t.page] = true
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse) //nolint:gosec // far below 2^63
}

func processors(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
