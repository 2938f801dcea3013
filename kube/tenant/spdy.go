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
	// maxFrame bounds a frame; servers copy 32 KiB at a time. maxField and maxFields bound a
	// decompressed header.
	maxFrame  = 128 << 10
	maxField  = 4 << 10
	maxFields = 32
)

// session is a connection with streams that this side opens. It has no goroutine: callers that wait
// for data read the frames.
type session struct {
	conn    io.ReadWriteCloser
	reader  *bufio.Reader
	framer  *spdy.Framer
	writeMu sync.Mutex
	next    spdy.StreamId
	streams map[spdy.StreamId]*stream
}

type stream struct {
	id      spdy.StreamId
	onData  func([]byte)
	replied bool
	ended   bool // by the peer
}

func newSession(conn io.ReadWriteCloser) (*session, error) {
	s := &session{conn: conn, reader: bufio.NewReader(conn), next: 1, streams: make(map[spdy.StreamId]*stream)}
	var err error
	s.framer, err = spdy.NewFramerWithOptions(conn, s.reader,
		spdy.WithMaxControlFramePayloadSize(maxFrame), spdy.WithMaxHeaderFieldSize(maxField), spdy.WithMaxHeaderCount(maxFields))
	return s, err
}

// open waits until the peer has accepted the stream, and calls take with its data.
func (s *session) open(kind string, more http.Header, take func([]byte)) (*stream, error) {
	header := more.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(corev1.StreamType, kind)
	opened := &stream{id: s.next, onData: take}
	s.next += 2
	s.streams[opened.id] = opened
	if err := s.send(&spdy.SynStreamFrame{StreamId: opened.id, Headers: header}); err != nil {
		return nil, err
	}
	for !opened.replied {
		if opened.ended {
			return nil, fmt.Errorf("the stream for %s was refused", kind)
		}
		if err := s.readFrame(); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

func (s *session) send(frame spdy.Frame) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	return s.framer.WriteFrame(frame)
}

// readFrame reads the next frame and passes its data to its stream. It returns io.EOF after the
// last frame.
func (s *session) readFrame() error {
	if err := s.checkFrame(); err != nil {
		return err
	}
	frame, err := s.framer.ReadFrame()
	if err != nil {
		return fmt.Errorf("reading a frame: %w", err)
	}
	switch frame := frame.(type) {
	case *spdy.SynReplyFrame:
		if st := s.streams[frame.StreamId]; st != nil {
			st.replied = true
			st.ended = st.ended || frame.CFHeader.Flags&spdy.ControlFlagFin != 0
		}
	case *spdy.DataFrame:
		if st := s.streams[frame.StreamId]; st != nil && !st.ended {
			st.onData(frame.Data)
			st.ended = frame.Flags&spdy.DataFlagFin != 0
		}
	case *spdy.RstStreamFrame:
		if st := s.streams[frame.StreamId]; st != nil {
			st.ended = true
		}
	case *spdy.PingFrame:
		return s.send(frame)
	case *spdy.GoAwayFrame:
		return io.EOF
	}
	return nil
}

// checkFrame checks the head of a frame before the library, which trusts its length, allocates
// memory for it. It rejects frames that open streams or change settings, which a server does not
// send here.
func (s *session) checkFrame() error {
	const control = 0x80
	head, err := s.reader.Peek(8)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return err
	}
	if length := int(head[5])<<16 | int(head[6])<<8 | int(head[7]); length > maxFrame {
		return fmt.Errorf("%w: a frame of %d bytes", ErrTooLarge, length)
	}
	kind := spdy.ControlFrameType(head[2])<<8 | spdy.ControlFrameType(head[3])
	known := []spdy.ControlFrameType{spdy.TypeSynReply, spdy.TypeRstStream, spdy.TypePing, spdy.TypeGoAway}
	if head[0]&control != 0 && !slices.Contains(known, kind) {
		return fmt.Errorf("it sent an unexpected frame of kind %d", kind)
	}
	return nil
}

type limited struct{ data []byte }

func (l *limited) write(p []byte) {
	l.data = append(l.data, p[:min(len(p), maxOutput-len(l.data))]...)
}
