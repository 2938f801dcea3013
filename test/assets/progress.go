package assets

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	patience = 4 * time.Second        // a build that ends sooner reports nothing
	redraw   = 500 * time.Millisecond // between two updates of the line on a terminal
	quiet    = 10 * time.Second       // between two lines without a terminal
)

// progress reads the output of `go build -v`, and reports the elapsed time and the numbers of
// downloaded modules and compiled packages.
type progress struct {
	out      io.Writer
	terminal bool
	started  time.Time
	stop     context.CancelFunc
	done     chan struct{}

	mu         sync.Mutex
	partial    []byte
	downloaded int
	compiled   int
	total      int    // 0 while it is unknown
	current    string // the last module or package
	complaint  bytes.Buffer
}

func newProgress(out io.Writer, source string, packages []string) *progress {
	ctx, cancel := context.WithCancel(context.Background())
	p := &progress{out: out, started: time.Now(), stop: cancel, done: make(chan struct{})}
	if f, ok := out.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor is small
	}
	go p.report(ctx, source, packages)
	return p
}

// Write reads the output of the go command: a line per package, `go: downloading MODULE VERSION`, or an error.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, text...)
	for {
		line, rest, whole := bytes.Cut(p.partial, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		p.line(string(line))
		p.partial = rest
	}
}

func (p *progress) line(line string) {
	switch module, found := strings.CutPrefix(line, "go: downloading "); {
	case found:
		p.downloaded++
		p.current = module
	case line != "" && !strings.ContainsAny(line, " :#"):
		p.compiled++
		p.current = line
	default:
		fmt.Fprintln(&p.complaint, line)
	}
}

// close ends the report and returns the error messages of the go command.
func (p *progress) close() string {
	p.stop()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaint.Write(p.partial)
	return strings.TrimSpace(p.complaint.String())
}

func (p *progress) report(ctx context.Context, source string, packages []string) {
	defer close(p.done)
	select {
	case <-ctx.Done():
		return
	case <-time.After(patience):
	}
	go p.count(ctx, source, packages)
	every := quiet
	if p.terminal {
		every = redraw
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	p.print()
	for {
		select {
		case <-ctx.Done():
			p.end()
			return
		case <-tick.C:
			p.print()
		}
	}
}

// count sets total to the number of packages of the build. Packages in the build cache count too, but are not compiled.
func (p *progress) count(ctx context.Context, source string, packages []string) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps"}, packages...)...)
	cmd.Dir, cmd.Env = source, environment()
	out, err := cmd.Output()
	if err != nil {
		return // the build says why
	}
	n := 0
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); n++ {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = n
}

func (p *progress) print() {
	if text := p.text(); p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[2K%s", text)
	} else {
		fmt.Fprintln(p.out, text)
	}
}

func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "building  " + clock(time.Since(p.started))
	if p.downloaded > 0 {
		text += fmt.Sprintf("  %d modules downloaded", p.downloaded)
	}
	switch {
	case p.total > 0:
		text += fmt.Sprintf("  %d of %d packages", p.compiled, p.total)
	case p.compiled > 0:
		text += fmt.Sprintf("  %d packages", p.compiled)
	}
	if p.compiled >= p.total && p.total > 0 {
		return text + "  linking"
	}
	if room := 78 - len(text); p.current != "" && len(p.current) <= room {
		text += "  " + p.current
	}
	return text
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[2K")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "built     %s  %d packages compiled\n", clock(time.Since(p.started)), p.compiled)
}

func clock(d time.Duration) string {
	seconds := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
