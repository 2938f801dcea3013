package tenant

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/moby/spdystream/spdy"
	corev1 "k8s.io/api/core/v1"
)

const (
	// mostFrame bounds one frame: a server copies 32 KiB at a time. mostField and mostFields bound a decompressed header.
	mostFrame  = 128 << 10
	mostField  = 4 << 10
	mostFields = 32
)

// session is a connection with streams that this side opens. It has no goroutine: the callers that wait for data read the frames.
type session struct {
	conn   io.ReadWriteCloser
	in     *bufio.Reader
	framer *spdy.Framer
	write  sync.Mutex
	next   spdy.StreamId
	opened map[spdy.StreamId]*stream
}

type stream struct {
	id      spdy.StreamId
	take    func([]byte)
	replied bool
	ended   bool // by the peer
}

func newSession(conn io.ReadWriteCloser) (*session, error) {
	s := &session{conn: conn, in: bufio.NewReader(conn), next: 1, opened: make(map[spdy.StreamId]*stream)}
	var err error
	s.framer, err = spdy.NewFramerWithOptions(conn, s.in,
		spdy.WithMaxControlFramePayloadSize(mostFrame), spdy.WithMaxHeaderFieldSize(mostField), spdy.WithMaxHeaderCount(mostFields))
	return s, err
}

// open opens a stream, and waits until the peer has accepted it. take is called with the data of the stream.
func (s *session) open(kind string, more http.Header, take func([]byte)) (*stream, error) {
	header := more.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(corev1.StreamType, kind)
	opened := &stream{id: s.next, take: take}
	s.next += 2
	s.opened[opened.id] = opened
	if err := s.send(&spdy.SynStreamFrame{StreamId: opened.id, Headers: header}); err != nil {
		return nil, err
	}
	for !opened.replied {
		if opened.ended {
			return nil, fmt.Errorf("the stream for %s was refused", kind)
		}
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

func (s *session) send(frame spdy.Frame) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.framer.WriteFrame(frame)
}

// step reads one frame. It returns io.EOF after the last frame.
func (s *session) step() error {
	if err := s.acceptable(); err != nil {
		return err
	}
	frame, err := s.framer.ReadFrame()
	if err != nil {
		return fmt.Errorf("reading a frame: %w", err)
	}
	switch frame := frame.(type) {
	case *spdy.SynReplyFrame:
		if st := s.opened[frame.StreamId]; st != nil {
			st.replied = true
			st.ended = st.ended || frame.CFHeader.Flags&spdy.ControlFlagFin != 0
		}
	case *spdy.DataFrame:
		if st := s.opened[frame.StreamId]; st != nil && !st.ended {
			st.take(frame.Data)
			st.ended = frame.Flags&spdy.DataFlagFin != 0
		}
	case *spdy.RstStreamFrame:
		if st := s.opened[frame.StreamId]; st != nil {
			st.ended = true
		}
	case *spdy.PingFrame:
		return s.send(frame)
	case *spdy.GoAwayFrame:
		return io.EOF
	}
	return nil
}

// acceptable checks the head of the next frame before the library allocates memory for it, because the library trusts the length in the head. It
// rejects frames that open streams or change settings, because a server does not send them here.
func (s *session) acceptable() error {
	const control = 0x80
	head, err := s.in.Peek(8)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return err
	}
	if length := int(head[5])<<16 | int(head[6])<<8 | int(head[7]); length > mostFrame {
		return fmt.Errorf("%w: a frame of %d bytes", ErrTooMuch, length)
	}
	kind := spdy.ControlFrameType(head[2])<<8 | spdy.ControlFrameType(head[3])
	known := []spdy.ControlFrameType{spdy.TypeSynReply, spdy.TypeRstStream, spdy.TypePing, spdy.TypeGoAway}
	if head[0]&control != 0 && !slices.Contains(known, kind) {
		return fmt.Errorf("it sends a frame of kind %d, which no server sends here", kind)
	}
	return nil
}

// limited keeps the beginning of the data.
type limited struct{ kept []byte }

func (l *limited) take(p []byte) {
	l.kept = append(l.kept, p[:min(len(p), mostOutput-len(l.kept))]...)
}
