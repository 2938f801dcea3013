package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"scute.dev/cmd/ui/page"
)

const (
	// pause is the least time between two messages to a page: a log that grows fast is not drawn for each of its commits.
	pause = 250 * time.Millisecond
	// beat is how often a page is told that the connection lives.
	beat = 20 * time.Second
	// patience is how long a message may take. A page that does not read loses its connection, and takes it up again when it does.
	patience = 10 * time.Second
)

// live sends the part of a page that changes whenever it has changed.
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	seen := cmp.Or(r.Header.Get("Last-Event-ID"), query.Get("after"))
	query.Del("after")
	query.Del("at")
	last, _ := strconv.ParseUint(seen, 10, 64) // a page that does not say what it has is sent all
	head := h.feed.Commits.Head()              // before it is asked what of it may be seen
	l, err := h.look(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if l.rights != "" { // how far the log was looked at is not said: it is sent all
		last = 0
	}
	leave, err := h.open.try(l.person, mostOpen)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	more, stop, err := h.feed.Follow()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w: w, to: http.NewResponseController(w), looked: last, beats: time.NewTicker(beat)}
	defer s.beats.Stop()
	if err := s.send([]byte(": follows\n\n")); err != nil {
		return
	}
	for {
		if last := h.drawn.last(l, head); last > s.looked || l.rights != s.rights {
			part, seq, err := h.drawn.part(l, of(r), query, last, func() (func(), error) { return h.wait(r, false) })
			if err != nil && !errors.Is(err, errBusy) { // what the page is about may not be seen any more, or cannot be read
				part, err = page.Missing(err)
			}
			if err != nil || s.message(part, seq) != nil {
				return
			}
			s.looked, s.rights = last, l.rights
		}
		if !s.wait(r, more) {
			return
		}
		head = h.feed.Commits.Head()
		if l, err = h.look(r); err != nil {
			h.over(s, r, err)
			return
		}
	}
}

// stream is an open connection.
type stream struct {
	w  http.ResponseWriter
	to *http.ResponseController
	// looked is the last commit that the page was drawn of, with which rights, and sent a hash of what was sent last.
	looked uint64
	rights string
	sent   [sha256.Size]byte
	beats  *time.Ticker
}

// wait returns when there may be more, after the pause, and at each beat, so that somebody who may not look any more is not told more. The beats
// do not depend on what comes: a log that grows by what the page does not show keeps the connection alive as any other, and is not noticed.
func (s *stream) wait(r *http.Request, more <-chan struct{}) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-s.beats.C:
		return s.send([]byte(": lives\n\n")) == nil
	case <-more:
	}
	select {
	case <-r.Context().Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// message sends a part of a page as one event.
func (s *stream) message(part []byte, seq uint64) error {
	hash := sha256.Sum256(part)
	if hash == s.sent {
		return nil
	}
	s.sent = hash
	var out bytes.Buffer
	fmt.Fprintf(&out, "id: %d\n", seq)
	for line := range bytes.Lines(part) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	return s.send(out.Bytes())
}

func (s *stream) send(data []byte) error {
	if err := s.to.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := s.w.Write(data); err != nil {
		return err
	}
	if err := s.to.Flush(); err != nil {
		return err
	}
	return s.to.SetWriteDeadline(time.Time{}) // by HTTP/2 it ends a stream that writes nothing, too
}
