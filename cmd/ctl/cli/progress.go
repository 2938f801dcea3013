package cli

import (
	"fmt"
	"time"

	text "scute.dev/cmd/ctl/term"
)

// Progress is a line on Err that is redrawn in place. It writes nothing if Err is not a terminal.
type Progress struct {
	env   *Env
	last  time.Time
	shown bool
}

// Progress returns a new progress line.
func (e *Env) Progress() *Progress { return &Progress{env: e, last: e.Now()} }

const progressEvery = 200 * time.Millisecond

// Showf redraws the line, at most five times a second.
func (p *Progress) Showf(format string, args ...any) {
	now := p.env.Now()
	if _, _, terminal := p.env.Size(p.env.Err); !terminal || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprint(p.env.Err, "\r\x1b[2K"+text.Clean(fmt.Sprintf(format, args...)))
}

// Done clears the line.
func (p *Progress) Done() {
	if p.shown {
		fmt.Fprint(p.env.Err, "\r\x1b[2K")
	}
}
