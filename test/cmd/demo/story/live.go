package story

import (
	"fmt"
	"time"
)

// Live is a line with progress. On a terminal it is redrawn in place, with a running clock. In a pipe a line is printed
// when the text has changed, but not too often.
type Live struct {
	story *Story
	text  string
	since time.Time // when the last line was printed in a pipe
	said  string
	stop  chan struct{}
	done  chan struct{}
}

const (
	redraw = 150 * time.Millisecond
	// quiet is the minimum time between two lines in a pipe.
	quiet = 2 * time.Second
)

// Live begins a progress line. Only one may exist at a time. Done ends it.
func (s *Story) Live(format string, args ...any) *Live {
	l := &Live{story: s, text: clean(fmt.Sprintf(format, args...)), stop: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	s.elapsed()
	s.live = l
	s.mu.Unlock()
	go l.run()
	return l
}

// Set sets the text of the line.
func (l *Live) Set(format string, args ...any) {
	l.story.mu.Lock()
	defer l.story.mu.Unlock()
	l.text = clean(fmt.Sprintf(format, args...))
}

// Done removes the line. The caller prints the result.
func (l *Live) Done() {
	close(l.stop)
	<-l.done
	l.story.mu.Lock()
	defer l.story.mu.Unlock()
	l.story.erase()
	l.story.live = nil
}

func (l *Live) run() {
	defer close(l.done)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			l.draw(time.Since(began))
		}
	}
}

func (l *Live) draw(since time.Duration) {
	s := l.story
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Terminal {
		if now := time.Now(); l.text != l.said && now.Sub(l.since) >= quiet {
			l.said, l.since = l.text, now
			s.print(fmt.Sprintf("%6s  %s", clock(s.elapsed()), l.text))
		}
		return
	}
	width := 80
	if s.Width != nil {
		width = s.Width()
	}
	text := fmt.Sprintf("%s  %s", l.text, s.paint(dim, fmt.Sprintf("%ds", int(since.Seconds()))))
	if len([]rune(l.text))+indent+6 > width {
		text = fit(l.text, width-indent-1)
	}
	fmt.Fprintf(s.Out, "\r\x1b[2K%s%s", s.paint(dim, fmt.Sprintf("%6s  ", clock(s.elapsed()))), text)
	s.drawn = true
}

// erase clears the live line if it is on the screen. The caller holds mu.
func (s *Story) erase() {
	if s.drawn {
		fmt.Fprint(s.Out, "\r\x1b[2K")
		s.drawn = false
	}
}
