package ui

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scute.dev/internal/sleep"
	"scute.dev/ui/page"
)

const (
	// minInterval is the minimum time between two messages. Without it, a log that grows fast would be
	// rendered at each commit.
	minInterval       = 250 * time.Millisecond
	keepAliveInterval = 20 * time.Second
	// writeTimeout is the time after which a page that does not read is disconnected. The page then
	// reconnects.
	writeTimeout = 10 * time.Second
)

// live sends the changing part of a page after each change.
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	seen := cmp.Or(r.Header.Get("Last-Event-ID"), query.Get("after"))
	query.Del("after")
	query.Del("at")
	last, _ := strconv.ParseUint(seen, 10, 64) // 0 if absent: the page receives the whole part
	more, stop, err := h.feed.Follow()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w: w, controller: http.NewResponseController(w), lastSeq: last, keepAlive: time.NewTicker(keepAliveInterval)}
	defer s.keepAlive.Stop()
	if err := s.send([]byte(": follows\n\n")); err != nil {
		return
	}
	for {
		if head := h.feed.Commits.Head(); head > s.lastSeq {
			part, seq, err := h.site.Page(strings.TrimPrefix(r.URL.Path, "/live"), query, true)
			if err != nil { // the subject no longer exists or cannot be read
				part, err = page.Missing(err)
			}
			if err != nil || s.message(part, seq) != nil {
				return
			}
			s.lastSeq = head
		}
		if !s.wait(r, more) {
			return
		}
	}
}

type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	// lastSeq is the sequence of the last commit that the page shows. sent is the hash of the last
	// message.
	lastSeq   uint64
	sent      [sha256.Size]byte
	keepAlive *time.Ticker
}

// wait waits until the log has grown and minInterval has passed, and sends keep-alive comments. It
// reports whether the connection is open.
func (s *stream) wait(r *http.Request, more <-chan struct{}) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-s.keepAlive.C:
		return s.send([]byte(": lives\n\n")) == nil
	case <-more:
	}
	return sleep.For(r.Context(), minInterval) == nil
}

// message sends a part of a page, unless it is equal to the last part that was sent.
func (s *stream) message(part []byte, seq uint64) error {
	hash := sha256.Sum256(part)
	if hash == s.sent {
		return nil
	}
	s.sent = hash
	var out bytes.Buffer
	out.WriteString("id: " + strconv.FormatUint(seq, 10) + "\n")
	for line := range bytes.Lines(part) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	return s.send(out.Bytes())
}

func (s *stream) send(data []byte) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(data); err != nil {
		return err
	}
	if err := s.controller.Flush(); err != nil {
		return err
	}
	return s.controller.SetWriteDeadline(time.Time{}) // with HTTP/2, a deadline also ends an idle stream
}
