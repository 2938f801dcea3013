package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"scute.dev/ui/page"
)

const (
	// pause is the minimum time between two messages to a page, so that a fast-growing log is not rendered at each commit.
	pause = 250 * time.Millisecond
	// beat is the interval of keep-alive comments.
	beat = 20 * time.Second
	// patience is the write timeout of a message. A page that does not read is disconnected, and reconnects later.
	patience = 10 * time.Second
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
	s := &stream{w: w, to: http.NewResponseController(w), drawn: last, beats: time.NewTicker(beat)}
	defer s.beats.Stop()
	if err := s.send([]byte(": follows\n\n")); err != nil {
		return
	}
	for {
		if head := h.feed.Commits.Head(); head > s.drawn {
			part, seq, err := h.drawn.part(h.site, of(r), query, head)
			if err != nil { // the subject no longer exists or cannot be read
				part, err = page.Missing(err)
			}
			if err != nil || s.message(part, seq) != nil {
				return
			}
			s.drawn = head
		}
		if !s.wait(r, more) {
			return
		}
	}
}

// stream is an open connection.
type stream struct {
	w  http.ResponseWriter
	to *http.ResponseController
	// drawn is the last commit that the page shows, and sent the hash of the last message.
	drawn uint64
	sent  [sha256.Size]byte
	beats *time.Ticker
}

// wait waits until the log has grown and the pause is over, and sends a comment at each beat. It reports whether the connection is open.
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

// message sends a part of a page as one event, unless it equals the last one.
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
	return s.to.SetWriteDeadline(time.Time{}) // with HTTP/2, a deadline also ends an idle stream
}
